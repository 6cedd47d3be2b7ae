#pragma once

#include <kj/async.h>

#include <string>

#include "checkout.h"

namespace oc::git {

// Is the branch checked out anywhere: in the checkout or in a linked worktree of it, born or not, or in the middle of a
// rebase or bisection that will come back to it?
kj::Promise<bool> isCheckedOut(const Loop& loop, const CheckoutFacts& checkout, std::string branch);

}  // namespace oc::git
