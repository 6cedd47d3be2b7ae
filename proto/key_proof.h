// How a run's shim and a daemon prove to each other that they have the run's key (proto/run.capnp, Lobby).
#pragma once

#include <string>
#include <string_view>

#include "base/crypto.h"

namespace oc {

// HMAC-SHA-256(key, role ‖ first ‖ second).
inline std::string proveKey(std::string_view key, std::string_view role, std::string_view first,
                            std::string_view second) {
  return hmacSha256(key, std::string(role) + std::string(first) + std::string(second));
}

}  // namespace oc
