#include "making.h"

#include <dirent.h>
#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "tree_remover.h"

namespace oc::git {

kj::Promise<OrRefusal<WorkspaceFacts>> Making::run() {
  auto steps = kj::evalNow([this]() { return checkBranch(); })
                   .then([this]() { return inspect(); })
                   .then([this]() { return resolveStart(); })
                   .then([this]() { return prepareDirectory(); })
                   .then([this]() { return make(); })
                   .then([this]() {
                     return WorkspaceFacts{start, order.branch, order.startPoint.empty() ? checkout.branch : ""};
                   });
  return orRefusal<WorkspaceFacts>(kj::mv(steps)).then([this](OrRefusal<WorkspaceFacts> answer) {
    auto cleaned = answer.ok() || !ours ? kj::Promise<void>(kj::READY_NOW) : cleanUp();
    return cleaned.then([answer = kj::mv(answer)]() mutable { return kj::mv(answer); });
  });
}

kj::Promise<void> Making::checkBranch() {
  return isBranchName(loop, order.branch).then([this](bool valid) {
    if (!valid) refuse(invalidBranch(order.branch));
  });
}

kj::Promise<void> Making::inspect() {
  return inspectCheckout(loop, order.checkout).then([this](OrRefusal<CheckoutFacts> answer) {
    checkout = accept(kj::mv(answer));
  });
}

kj::Promise<void> Making::resolveStart() {
  if (order.startPoint.empty()) {
    start = checkout.head;
    return kj::READY_NOW;
  }
  auto unknown = [this]() {
    refuse(fmt::format("\"{}\" is no commit of {}", shown(order.startPoint), checkout.path),
           "name a branch, a tag or a commit that the checkout has");
  };
  if (order.startPoint[0] == '-' || hasControlCharacters(order.startPoint)) unknown();
  return runGit(loop, inCheckout({"rev-parse", "--verify", "--quiet", order.startPoint + "^{commit}"}))
      .then([this, unknown](GitResult result) {
        start = result.line();
        if (!result.ok() || !isObjectId(start)) unknown();
      });
}

void Making::prepareDirectory() {
  auto& path = order.workspace;
  if (mkdir(path.c_str(), 0755) < 0) {
    if (errno != EEXIST) KJ_FAIL_SYSCALL("mkdir", errno, path);
    DIR* listing = opendir(path.c_str());
    if (listing == nullptr) KJ_FAIL_SYSCALL("opendir", errno, path);
    KJ_DEFER(closedir(listing));
    while (struct dirent* entry = readdir(listing)) {
      if (order.laidOut || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      refuse(fmt::format("{} is there already, and not empty", path), "remove it: open-conduit-git remove --workspace");
    }
    struct stat stats;
    KJ_SYSCALL(lstat(path.c_str(), &stats), path);
    if (!S_ISDIR(stats.st_mode) || stats.st_uid != geteuid()) {
      refuse(fmt::format("{} is there already, and no directory of yours", path), "move it away");
    }
  }
  ours = true;
}

kj::Promise<void> Making::cleanUp() {
  return removeTreeInSteps(loop.timer, order.workspace)
      .then([this]() { return undo(); })
      .catch_([](kj::Exception&& exception) {
        logWarning("what was half-made could not be removed: {}", describe(exception));
      });
}

GitCommand Making::inCheckout(std::vector<std::string> arguments) const {
  GitCommand command;
  command.arguments = std::move(arguments);
  command.gitDir = checkout.gitDir;
  return command;
}

kj::Promise<std::string> Making::must(GitCommand command, std::string doing) {
  return runGit(loop, kj::mv(command)).then([this, doing = std::move(doing)](GitResult result) {
    if (result.ok()) return result.line();
    auto why = result.why();
    bool full = why.find("No space left") != std::string::npos || why.find("quota exceeded") != std::string::npos;
    refuse(fmt::format("{} {} failed: {}", doing, order.workspace, why),
           full ? "free some space on that disk, then try again" : "see the run's log");
  });
}

}  // namespace oc::git
