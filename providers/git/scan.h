// A look at a workspace's files, running nothing.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "base/refusal.h"
#include "git_command.h"

namespace oc::git {

struct ScanFacts {
  std::vector<std::string> warnings;  // at most 100; those nearest to the top
  uint64_t entries = 0;               // how many files and directories were looked at
};

// What the repository has itself is told of where it has changed after `clonedAt` (see proto/git.capnp).
// Refuses (`sandbox_denied`) a file with a hard link outside the workspace, and what cannot be looked at wholly: a
// directory that is closed, nested too deep, or too many files.
kj::Promise<OrRefusal<ScanFacts>> scanWorkspace(const Loop& loop, std::string workspace, int64_t clonedAt);

}  // namespace oc::git
