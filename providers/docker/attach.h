// Attaching to a container's streams: an HTTP call whose connection becomes the container's stream.
#pragma once

#include <kj/async-io.h>

#include <optional>
#include <string>

#include "base/refusal.h"

namespace oc::docker {

// Attaches to standard input, output and error. Nothing: the Engine has switched over, and not one byte behind its
// answer was read. `stream` stays the caller's; it must not have been used before.
kj::Promise<std::optional<Refusal>> attach(kj::AsyncIoStream& stream, const std::string& container,
                                           const std::string& context);

}  // namespace oc::docker
