// A workspace that is a linked worktree of the checkout, for bindings without a sandbox: its commits are in the
// checkout at once.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "left_lock.h"
#include "making.h"

namespace oc::git {

namespace {

class Adding final : public Making {
 public:
  Adding(const Loop& loop, WorkspaceOrder order) : Making(loop, std::move(order)) {}

 protected:
  kj::Promise<void> make() override {
    return removeEarlier()
        .then([this]() { return requireNewBranch(); })
        .then([this]() { return add(); })
        .then([this]() { return track(); });
  }

 private:
  // What one that was killed has left of this.
  kj::Promise<void> removeEarlier() {
    if (!order.again) return kj::READY_NOW;
    return removeBranch();
  }

  kj::Promise<void> requireNewBranch() {
    return runGit(loop, inCheckout({"rev-parse", "--verify", "--quiet", "refs/heads/" + order.branch}))
        .then([this](GitResult result) {
          if (!result.ok()) return;
          refuse({"branch_invalid",
                  fmt::format("the branch {} exists in {} already", shown(order.branch), checkout.path),
                  "delete or rename it, or give the binding's resource another branch"});
        });
  }

  kj::Promise<void> add() {
    added = true;
    auto command = inCheckout({"worktree", "add", "--quiet", "--no-track", "-b", order.branch, order.workspace, start});
    command.workTree = checkout.path;
    return must(kj::mv(command), "adding the worktree").ignoreResult();
  }

  // As `git branch --set-upstream-to` would, which wants the remote branch to be there.
  kj::Promise<void> track() {
    if (!checkout.hasRemote("origin")) return kj::READY_NOW;
    auto set = [this](const std::string& name, const std::string& value) {
      auto command = inCheckout({"config", "--local", fmt::format("branch.{}.{}", order.branch, name), value});
      return must(kj::mv(command), "setting the upstream of").ignoreResult();
    };
    return set("remote", "origin").then([this, set]() { return set("merge", "refs/heads/" + order.branch); });
  }

  kj::Promise<void> undo() override {
    if (!added) return kj::READY_NOW;
    removeWorktreeEntries(checkout.gitDir, order.workspace);
    return removeBranch();
  }

  // Only as long as it is what we made: at the start.
  kj::Promise<void> removeBranch() {
    LeftLock lock(checkout.gitDir, order.branch);
    return runGit(loop, inCheckout({"update-ref", "-d", "refs/heads/" + order.branch, start}))
        .then([this, lock](GitResult result) -> kj::Promise<void> {
          if (!result.ok() && order.again && lock.removeIfUntouched()) return removeBranch();
          return kj::READY_NOW;
        });
  }

  bool added = false;
};

}  // namespace

kj::Promise<OrRefusal<WorkspaceFacts>> addWorktree(const Loop& loop, WorkspaceOrder order) {
  auto adding = kj::heap<Adding>(loop, std::move(order));
  auto promise = adding->run();
  return promise.attach(kj::mv(adding));
}

}  // namespace oc::git
