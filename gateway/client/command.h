// What the commands of open-conduit-toolbelt share.
#pragma once

#include <string>
#include <vector>

namespace oc::gateway {

using Arguments = std::vector<std::string>;

// The exit code when it is us that failed, and not what we were to start: as env(1), docker and others have it.
constexpr int exitOurs = 125;

}  // namespace oc::gateway
