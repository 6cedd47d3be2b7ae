#pragma once

#include <kj/async.h>

#include <string>

#include "base/refusal.h"
#include "git_command.h"

namespace oc::git {

// Doctor's check: git's own line about its version. Refuses (`sandbox_unavailable`) where git is missing, too old, or
// does not run under the lockdown.
kj::Promise<OrRefusal<std::string>> checkGit(const Loop& loop);

}  // namespace oc::git
