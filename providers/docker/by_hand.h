#pragma once

#include <string>
#include <vector>

namespace oc::docker {

extern const char* const usageByHand;

int byHand(const std::vector<std::string>& words);

}  // namespace oc::docker
