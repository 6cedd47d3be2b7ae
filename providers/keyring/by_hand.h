// open-conduit-keyring by hand, and for `open-conduit secret`.
#pragma once

#include <string>
#include <vector>

namespace oc::keyring {

extern const char* const usageByHand;
int byHand(const std::vector<std::string>& words);

}  // namespace oc::keyring
