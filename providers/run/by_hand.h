#pragma once

#include <string>
#include <vector>

namespace oc::run {

// `open-conduit-run exec …`; see its usage.
int byHand(const std::vector<std::string>& words);

}  // namespace oc::run
