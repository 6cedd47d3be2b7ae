// What making a clone and making a worktree share: the checks before, and nothing half-made after.
#pragma once

#include <memory>

#include "checkout.h"
#include "task.h"
#include "workspace.h"

namespace oc::git {

class Making : protected Task {
 public:
  virtual ~Making() noexcept(false) = default;
  kj::Promise<OrRefusal<WorkspaceFacts>> run();

 protected:
  Making(const Loop& loop, WorkspaceOrder order) : Task(loop, "workspace_failed"), order(std::move(order)) {}

  // The steps of the kind, after the checks: `checkout` and `start` are known, the workspace is an empty directory of
  // ours.
  virtual kj::Promise<void> make() = 0;
  // What else must go after a failure, besides the workspace.
  virtual kj::Promise<void> undo() { return kj::READY_NOW; }

  GitCommand inCheckout(std::vector<std::string> arguments) const;
  // The output's line of a command that must succeed; `doing` is for the refusal: "… failed: why".
  kj::Promise<std::string> must(GitCommand command, std::string doing);

  WorkspaceOrder order;
  CheckoutFacts checkout;
  std::string start;  // a commit id

 private:
  kj::Promise<void> checkBranch();
  kj::Promise<void> inspect();
  kj::Promise<void> resolveStart();
  void prepareDirectory();
  kj::Promise<void> cleanUp();

  bool ours = false;  // the workspace: may be removed when something fails
};

}  // namespace oc::git
