// No agent writes what the operator's shell, session or tools run later.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/places.h"
#include "base/refusal.h"

namespace oc::sandbox {

// `writable`: each path that a run may write, with the rule that put it there; of them the policy's own ("write[0]")
// count. Refuses (`sandbox_denied`) the first that lies in such a file or folder or holds one, there or not: what is
// not there an agent can make.
std::optional<Refusal> refuseStartupWrites(const std::map<std::string, std::string>& writable, const Places& places);

}  // namespace oc::sandbox
