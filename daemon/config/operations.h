// The names of the operations and toolsets that there are, for what config check says of a name. What they do is their
// owners' to know.
#pragma once

#include <string>
#include <vector>

namespace oc::config {

const std::vector<std::string>& knownOperations();
// Each begins with '@'.
const std::vector<std::string>& knownToolsets();

}  // namespace oc::config
