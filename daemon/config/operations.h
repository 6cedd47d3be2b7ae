// The names of the operations and toolsets that there are, for what config check says of a name. What they do is their
// owners' to know.
#pragma once

#include <string>
#include <vector>

namespace oc::config {

const std::vector<std::string>& knownOperations();
// The one that an operation belongs to.
std::string toolsetOf(const std::string& operation);
// Each begins with '@'.
const std::vector<std::string>& knownToolsets();

}  // namespace oc::config
