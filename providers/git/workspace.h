// Making and removing a Work's workspace.
#pragma once

#include <kj/async.h>

#include <string>

#include "base/refusal.h"
#include "git_command.h"

namespace oc::git {

struct WorkspaceFacts {
  std::string base;  // the commit that the branch starts at
  std::string branch;
  std::string from;  // the checkout's branch that this is; empty: none
};

struct WorkspaceOrder {
  std::string checkout, workspace;
  std::string branch;
  std::string startPoint;  // empty: the checkout's HEAD
  bool laidOut = false;    // the workspace has its folders, which are to stay the same ones
  bool again = false;      // an earlier one for the same may have been killed while it made it
};

// As the contract's methods of these names say. `workspace` may be there already when it is an empty directory. On any
// failure it is gone.
kj::Promise<OrRefusal<WorkspaceFacts>> cloneWorkspace(const Loop& loop, WorkspaceOrder order);
kj::Promise<OrRefusal<WorkspaceFacts>> addWorktree(const Loop& loop, WorkspaceOrder order);

// `checkout` is empty unless the workspace may be a linked worktree of it: its entry there goes, too.
kj::Promise<OrRefusal<bool>> removeWorkspace(const Loop& loop, std::string workspace, std::string checkout);

// The entries for `workspace` among the linked worktrees of the repository at `gitDir`. By reading what they say: no
// git is run, so that nothing in the workspace has a say.
void removeWorktreeEntries(const std::string& gitDir, const std::string& workspace);

}  // namespace oc::git
