#pragma once

#include <string>
#include <vector>

namespace oc::git {

extern const char* const usageByHand;

// Runs one task as the daemon would, in an instance with the same lockdown, and prints its answer. Returns the exit
// code: 0, or 1 for a refusal. Throws kit::UsageError.
int byHand(const std::vector<std::string>& words);

}  // namespace oc::git
