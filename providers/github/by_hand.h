#pragma once

#include <string>
#include <vector>

namespace oc::github {

extern const char* const usageByHand;
// Returns the exit code.
int byHand(const std::vector<std::string>& words);

}  // namespace oc::github
