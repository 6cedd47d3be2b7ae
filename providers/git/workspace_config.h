// The config that a workspace starts with.
#pragma once

#include <string>

#include "checkout.h"

namespace oc::git {

// Text of .git/config for a clone of `checkout` on `branch`: the checkout's remotes (how they are reached, not what a
// remote may run here), who commits, how line ends are kept, and the branch's upstream where there is an "origin".
std::string workspaceConfig(const CheckoutFacts& checkout, const std::string& branch);

}  // namespace oc::git
