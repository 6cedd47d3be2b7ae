// The receiving side of a save: what comes in is hostile until git has checked every object and link of it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/log.h"
#include "checkout.h"
#include "checked_out.h"
#include "left_lock.h"
#include "quarantine.h"
#include "save.h"
#include "task.h"

namespace oc::git {

namespace {

class Receiving final : private Task {
 public:
  Receiving(const Loop& loop, ReceiveOrder order, kj::AutoCloseFd input)
      : Task(loop, "save_failed"), order(std::move(order)), input(kj::mv(input)) {}

  kj::Promise<OrRefusal<std::string>> run() {
    auto steps = kj::evalNow([this]() { return checkOrder(); })
                     .then([this]() { return openCheckout(); })
                     .then([this]() { return sweepAfterInterruption(); })
                     .then([this]() { return currentTip(order.branch); })
                     .then([this](std::string current) -> kj::Promise<std::string> {
                       if (order.tip == order.old) return order.branch;
                       // As before a crash of who asked: it is done.
                       if (current == order.tip) return drain().then([this]() { return order.branch; });
                       return takeIn().then([this]() { return moveBranch(); });
                     });
    return orRefusal<std::string>(kj::mv(steps)).then([this](OrRefusal<std::string> answer) {
      return cleanUp(kj::mv(answer));
    });
  }

 private:
  kj::Promise<void> checkOrder() {
    if (!isObjectId(order.tip)) refuse(fmt::format("\"{}\" is no commit's id", shown(order.tip)), "");
    if (isZeroId(order.old)) order.old = std::string(order.tip.size(), '0');
    if (!isZeroId(order.old) && !isObjectId(order.old))
      refuse(fmt::format("\"{}\" is no commit's id", shown(order.old)), "");
    if (order.tip.size() != order.old.size()) refuse("the ids of the old and the new commit are of two kinds", "");
    return requireBranchName(order.branch).then([this]() { return requireBranchName(order.otherwise); });
  }

  kj::Promise<void> requireBranchName(const std::string& name) {
    return isBranchName(loop, name).then([this, &name](bool valid) {
      if (!valid) refuse(invalidBranch(name));
    });
  }

  kj::Promise<void> openCheckout() {
    return reopenCheckout(loop, order.checkout).then([this](OrRefusal<CheckoutFacts> answer) {
      checkout = accept(kj::mv(answer));
      objects = checkout.gitDir + "/objects";
    });
  }

  // It may have moved the branch, so that nothing else is left to do.
  kj::Promise<void> sweepAfterInterruption() {
    return order.interrupted ? Quarantine::sweep(loop.timer, objects) : kj::Promise<void>(kj::READY_NOW);
  }

  GitCommand command(std::vector<std::string> arguments) const {
    GitCommand command;
    command.arguments = std::move(arguments);
    command.gitDir = checkout.gitDir;
    return command;
  }

  // Reads the quarantine first, then the repository.
  GitCommand quarantined(std::vector<std::string> arguments) const {
    auto result = command(std::move(arguments));
    result.objectDirectory = KJ_ASSERT_NONNULL(quarantine).path();
    result.alternates = {objects};
    return result;
  }

  // ---- the objects ------------------------------------------------------------------------------

  kj::Promise<void> takeIn() {
    return Quarantine::sweep(loop.timer, objects)
        .then([this]() {
          quarantine.emplace(objects);
          return indexPack();
        })
        .then([this]() { return requireCommit(); })
        .then([this]() { return requireConnected(); })
        .then([this]() { migrate(); });
  }

  kj::Promise<void> indexPack() {
    auto index = quarantined(
        {"index-pack", "--stdin", "--strict", "-v", "--threads=2", fmt::format("--max-input-size={}", order.maxSize)});
    // A blob that is larger is checked as it passes, and never held in memory.
    index.settings = {{"core.bigFileThreshold", "16m"}};
    index.inputFd = duplicate(input);
    return runGit(loop, kj::mv(index)).then([this](GitResult result) {
      constexpr std::string_view pack = "pack\t";
      auto line = result.line();
      if (!result.ok() || !line.starts_with(pack)) {
        bool large = result.why().find("exceeds maximum allowed size") != std::string::npos;
        refuse(fmt::format("the run's commits were not taken into {}: {}", checkout.path, result.why()),
               large ? fmt::format("a save may have {} bytes; make the branch smaller", order.maxSize)
                     : "they are still in the workspace; look at what the run committed");
      }
      packName = "pack-" + line.substr(pack.size());
    });
  }

  kj::Promise<void> requireCommit() {
    return runGit(loop, quarantined({"cat-file", "-t", order.tip})).then([this](GitResult result) {
      if (result.ok() && result.line() == "commit") return;
      refuse(fmt::format("what came for {} does not have its commit {}", shown(order.branch), order.tip),
             "see the run's log");
    });
  }

  // Everything that the tip needs is there: in what came, or reachable in the checkout already.
  kj::Promise<void> requireConnected() {
    auto walk = quarantined({"rev-list", "--objects", "--quiet", "--stdin", "--not", "--all"});
    walk.input = order.tip + "\n";
    return runGit(loop, kj::mv(walk)).then([this](GitResult result) {
      if (result.ok()) return;
      refuse(fmt::format("what came for {} is not whole: {}", shown(order.branch), result.why()),
             "the checkout may have lost commits that the run started from; they are still in the workspace");
    });
  }

  void migrate() {
    auto& q = KJ_ASSERT_NONNULL(quarantine);
    // Nothing new: the branch went back to a commit that is here.
    if (q.countObjects(packName) > 0) q.migrate(packName);
  }

  // ---- the branch -------------------------------------------------------------------------------

  kj::Promise<std::string> moveBranch() {
    return isCheckedOut(loop, checkout, order.branch).then([this](bool checkedOut) -> kj::Promise<std::string> {
      if (checkedOut) {
        logInfo("{} is checked out in {}: its commits are kept under another name", shown(order.branch), checkout.path);
        return keepOtherwise(1);
      }
      return update(order.branch, order.old).then([this](Moved moved) -> kj::Promise<std::string> {
        if (moved == Moved::Yes) return order.branch;
        logInfo("{} was moved in {}: its commits are kept under another name", shown(order.branch), checkout.path);
        return keepOtherwise(1);
      });
    });
  }

  // `otherwise`, `otherwise-2`, …: the first that nobody has.
  kj::Promise<std::string> keepOtherwise(int number) {
    constexpr int most = 100;
    if (number > most) {
      refuse(fmt::format("{} and {} names after it are taken in {}", shown(order.otherwise), most, checkout.path),
             "delete some of these branches");
    }
    auto name = number == 1 ? order.otherwise : fmt::format("{}-{}", order.otherwise, number);
    return currentTip(name).then([this, name, number](std::string current) -> kj::Promise<std::string> {
      if (current == order.tip) return name;
      if (!current.empty()) return keepOtherwise(number + 1);
      return isCheckedOut(loop, checkout, name).then([this, name, number](bool checkedOut) -> kj::Promise<std::string> {
        if (checkedOut) return keepOtherwise(number + 1);
        return update(name, std::string(order.tip.size(), '0'))
            .then([this, name, number](Moved moved) -> kj::Promise<std::string> {
              if (moved == Moved::Yes) return name;
              return keepOtherwise(number + 1);
            });
      });
    });
  }

  enum class Moved { Yes, Elsewhere };

  // git compares and moves under its own lock; when it says no, the branch tells whether somebody was there first.
  kj::Promise<Moved> update(std::string name, std::string old) {
    auto update = command({"update-ref", "--no-deref", "-m", "open-conduit: saved from a workspace",
                           "refs/heads/" + name, order.tip, old});
    if (!logsAreKept()) update.settings = {{"core.logAllRefUpdates", "false"}};
    LeftLock lock(checkout.gitDir, name);
    return runGit(loop, kj::mv(update)).then([this, name, old, lock](GitResult result) -> kj::Promise<Moved> {
      if (result.ok()) return Moved::Yes;
      if (order.interrupted && lock.removeIfUntouched()) {
        logInfo("a git that was killed had left {}, which was removed", shown(lock.path()));
        return this->update(name, old);
      }
      return currentTip(name).then([this, name, old, why = result.why()](std::string current) {
        if (current == order.tip) return Moved::Yes;
        auto expected = isZeroId(old) ? std::string() : old;
        if (current != expected) return Moved::Elsewhere;
        // "agent" stands in the way of "agent/x", and the other way round.
        bool blocked = why.find("cannot create") != std::string::npos || why.find("exists;") != std::string::npos;
        if (blocked && name == order.branch && name != order.otherwise) return Moved::Elsewhere;
        refuse(fmt::format("the branch {} of {} could not be moved: {}", shown(name), checkout.path, why),
               blocked ? "a branch of a part of that name is in the way: rename it"
                       : "if no git runs there, remove the lock file that it names; then save again");
      });
    });
  }

  // A reflog is written where there are some; see the profile, which lets nothing else be made.
  bool logsAreKept() const {
    struct stat stats;
    return stat((checkout.gitDir + "/logs/refs/heads").c_str(), &stats) == 0 && S_ISDIR(stats.st_mode);
  }

  // Empty when there is no such branch.
  kj::Promise<std::string> currentTip(const std::string& name) {
    return runGit(loop, command({"rev-parse", "--verify", "--quiet", "refs/heads/" + name})).then([](GitResult result) {
      return result.ok() ? result.line() : std::string();
    });
  }

  // ---- the end ----------------------------------------------------------------------------------

  // The packing side would tell of a broken pipe before we are heard: read what it still sends, for a while.
  kj::Promise<void> drain() {
    struct stat stats;
    // A file, by hand, minds nothing.
    if (fstat(input.get(), &stats) < 0 || !(S_ISFIFO(stats.st_mode) || S_ISSOCK(stats.st_mode))) return kj::READY_NOW;
    auto stream = loop.provider.wrapInputFd(kj::mv(input));
    auto& ref = *stream;
    constexpr auto patience = 60 * kj::SECONDS;
    return readOn(ref)
        .exclusiveJoin(loop.timer.afterDelay(patience))
        .catch_([](kj::Exception&&) {})
        .attach(kj::mv(stream));
  }

  kj::Promise<void> readOn(kj::AsyncInputStream& stream) {
    return stream.tryRead(buffer, 1, sizeof(buffer)).then([this, &stream](size_t n) -> kj::Promise<void> {
      if (n == 0) return kj::READY_NOW;
      return readOn(stream);
    });
  }

  static kj::AutoCloseFd duplicate(const kj::AutoCloseFd& fd) {
    int copy;
    KJ_SYSCALL(copy = fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    return kj::AutoCloseFd(copy);
  }

  kj::Promise<OrRefusal<std::string>> cleanUp(OrRefusal<std::string> answer) {
    kj::Promise<void> removed = kj::READY_NOW;
    KJ_IF_MAYBE (q, quarantine) {
      removed = q->remove(loop.timer);
    }
    bool refused = !answer.ok();
    return removed
        .catch_([](kj::Exception&& exception) {
          logWarning("the quarantine could not be removed, the next save will: {}", describe(exception));
        })
        .then([this, refused]() -> kj::Promise<void> {
          if (refused && order.tip != order.old) return drain();
          return kj::READY_NOW;
        })
        .then([answer = kj::mv(answer)]() mutable { return kj::mv(answer); });
  }

  ReceiveOrder order;
  kj::AutoCloseFd input;
  CheckoutFacts checkout;
  std::string objects;
  kj::Maybe<Quarantine> quarantine;
  std::string packName;
  char buffer[65536];
};

}  // namespace

kj::Promise<OrRefusal<std::string>> receivePack(const Loop& loop, ReceiveOrder order, kj::AutoCloseFd input) {
  auto receiving = kj::heap<Receiving>(loop, std::move(order), kj::mv(input));
  auto promise = receiving->run();
  return promise.attach(kj::mv(receiving));
}

}  // namespace oc::git
