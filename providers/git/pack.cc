// The packing side of a save: finding what a branch has, and writing it.
#include <fmt/format.h>
#include <signal.h>

#include "hostile_ref.h"
#include "hostile_task.h"
#include "save.h"

namespace oc::git {

namespace {

class FindingTip final : private HostileTask {
 public:
  FindingTip(const Loop& loop, std::string workspace, std::string view, std::string branch, std::string base)
      : HostileTask(loop, std::move(workspace), std::move(view)), branch(std::move(branch)), base(std::move(base)) {}

  kj::Promise<OrRefusal<TipFacts>> run() {
    auto steps = kj::evalNow([this]() { return isBranchName(loop, branch); })
                     .then([this](bool valid) {
                       if (!valid) refuse(invalidBranch(branch));
                       if (!isObjectId(base)) refuse(fmt::format("\"{}\" is no commit's id", shown(base)), "");
                       requireRepository();
                       readTip();
                       return clearView();
                     })
                     .then([this]() {
                       makeView(base.size() == 64);
                       return requireCommit();
                     })
                     .then([this]() { return has(base); })
                     .then([this](bool there) { return count(there); })
                     .then([this]() { return facts; });
    return andClearView(orRefusal<TipFacts>(kj::mv(steps)));
  }

 private:
  void readTip() {
    auto found = readBranch(workspace + "/.git", branch);
    if (!found) {
      refuse(fmt::format("the workspace has no branch {}", shown(branch)),
             "the run deleted or renamed it; its commits are still in the workspace");
    }
    if (found->size() != base.size())
      refuse(fmt::format("the branch {} holds an id of another kind", shown(branch)), "");
    facts.tip = *found;
  }

  kj::Promise<void> requireCommit() {
    return runGit(loop, onObjects({"cat-file", "-t", facts.tip})).then([this](GitResult result) {
      if (result.ok() && result.line() == "commit") return;
      refuse(fmt::format("the branch {} points at {}, which is no commit{}{}", shown(branch), facts.tip,
                         result.complaint.empty() ? "" : ": ", result.complaint),
             fmt::format("{}: git fsck tells what is broken", giveUpOrLookAtCopy));
    });
  }

  kj::Promise<void> count(bool baseIsThere) {
    if (facts.tip == base) return kj::READY_NOW;
    auto command = onObjects({"rev-list", "--count", facts.tip});
    if (baseIsThere) command.arguments.push_back("^" + base);
    return runGit(loop, kj::mv(command)).then([this](GitResult result) {
      if (!result.ok()) refuse(fmt::format("the commits of {} cannot be read: {}", shown(branch), result.why()), "");
      facts.commits = static_cast<uint32_t>(std::min(std::strtoull(result.output.c_str(), nullptr, 10), 0xFFFFFFFFull));
    });
  }

  std::string branch, base;
  TipFacts facts;
};

class Packing final : private HostileTask {
 public:
  Packing(const Loop& loop, std::string workspace, std::string view, std::string tip, std::string base,
          kj::AutoCloseFd output)
      : HostileTask(loop, std::move(workspace), std::move(view)),
        tip(std::move(tip)),
        base(std::move(base)),
        output(kj::mv(output)) {}

  kj::Promise<OrRefusal<bool>> run() {
    auto steps = kj::evalNow([this]() {
                   if (!isObjectId(tip) || !isObjectId(base) || tip.size() != base.size()) {
                     refuse(fmt::format("\"{}\" and \"{}\" are no commits' ids", shown(tip), shown(base)), "");
                   }
                   requireRepository();
                   return clearView();
                 })
                     .then([this]() {
                       makeView(base.size() == 64);
                       return has(base);
                     })
                     .then([this](bool there) -> kj::Promise<bool> {
                       if (tip == base) return true;
                       return pack(there);
                     });
    return andClearView(orRefusal<bool>(kj::mv(steps)));
  }

 private:
  kj::Promise<bool> pack(bool baseIsThere) {
    auto command =
        onObjects({"pack-objects", "--revs", "--stdout", "--delta-base-offset", "--no-use-bitmap-index", "--progress"});
    command.input = tip + "\n";
    if (baseIsThere) command.input += "^" + base + "\n";
    command.outputFd = kj::mv(output);
    return runGit(loop, kj::mv(command)).then([this](GitResult result) {
      if (result.ok()) return true;
      if (result.end.signaled && result.end.code == SIGPIPE) {
        refuse({"receiver_gone", "the receiving side stopped reading the commits", "see the run's log"});
      }
      refuse(fmt::format("the commits cannot be packed: {}", result.why()),
             fmt::format("{}: git fsck tells what is broken", giveUpOrLookAtCopy));
    });
  }

  std::string tip, base;
  kj::AutoCloseFd output;
};

}  // namespace

kj::Promise<OrRefusal<TipFacts>> findTip(const Loop& loop, std::string workspace, std::string view, std::string branch,
                                         std::string base) {
  auto finding = kj::heap<FindingTip>(loop, std::move(workspace), std::move(view), std::move(branch), std::move(base));
  auto promise = finding->run();
  return promise.attach(kj::mv(finding));
}

kj::Promise<OrRefusal<bool>> writePack(const Loop& loop, std::string workspace, std::string view, std::string tip,
                                       std::string base, kj::AutoCloseFd output) {
  auto packing =
      kj::heap<Packing>(loop, std::move(workspace), std::move(view), std::move(tip), std::move(base), kj::mv(output));
  auto promise = packing->run();
  return promise.attach(kj::mv(packing));
}

}  // namespace oc::git
