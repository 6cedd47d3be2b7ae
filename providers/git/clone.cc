// A workspace that shares nothing with its checkout: the objects that its refs need are packed there and unpacked here,
// once, and everything else in its .git is written by us.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/log.h"
#include "making.h"
#include "workspace_config.h"

namespace oc::git {

namespace {

struct Ref {
  std::string id, name;
};

class Cloning final : public Making {
 public:
  Cloning(const Loop& loop, WorkspaceOrder order) : Making(loop, std::move(order)) {
    gitDir = this->order.workspace + "/.git";
  }

 protected:
  kj::Promise<void> make() override {
    layOut();
    return listRefs()
        .then([this]() { return copyObjects(); })
        .then([this]() { return writeRefs(); })
        .then([this]() { return createBranch(); })
        .then([this]() { return checkOut(); });
  }

 private:
  // No template: its hooks and what else an installation has in there are none of ours. What git would obey is
  // there from the start, if empty, so that a sandbox can make it read-only.
  void layOut() {
    for (const char* part : {"", "/hooks", "/info", "/objects", "/objects/info", "/objects/pack", "/refs",
                             "/refs/heads", "/refs/tags", "/modules", "/worktrees"}) {
      if (order.laidOut && isFolder(gitDir + part)) continue;
      KJ_SYSCALL(mkdir((gitDir + part).c_str(), 0755), gitDir, part);
    }
    writeNew("HEAD", fmt::format("ref: refs/heads/{}\n", order.branch));
    fill("config", workspaceConfig(checkout, order.branch));
    writeNew("info/exclude", "");
    fill("config.worktree", "");
    copyShallow();
  }

  // A checkout that ends somewhere makes a workspace that ends there.
  void copyShallow() {
    constexpr size_t most = 64 << 20;
    auto path = checkout.gitDir + "/shallow";
    if (access(path.c_str(), F_OK) == 0) writeNew("shallow", readFile(path, most));
  }

  // A file that may be laid out, and is then empty.
  void fill(const std::string& name, const std::string& text) {
    if (!order.laidOut) return writeNew(name, text);
    auto fd = openFile(gitDir + "/" + name, O_WRONLY | O_NOFOLLOW);
    struct stat stats;
    KJ_SYSCALL(fstat(fd.get(), &stats), name);
    KJ_REQUIRE(S_ISREG(stats.st_mode) && stats.st_size == 0, "it is not as it was laid out", name);
    writeAll(fd.get(), text);
  }

  static bool isFolder(const std::string& path) {
    struct stat stats;
    return lstat(path.c_str(), &stats) == 0 && S_ISDIR(stats.st_mode);
  }

  void writeNew(const std::string& name, const std::string& text) {
    auto fd = openFile(gitDir + "/" + name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    writeAll(fd.get(), text);
  }

  // What the remotes have, and tags: `git fetch` then brings only what is new. Not the operator's own branches.
  kj::Promise<void> listRefs() {
    auto command = inCheckout({"for-each-ref", fmt::format("--count={}", mostRefs + 1),
                               "--format=%(objectname) %(refname) %(symref)", "refs/remotes", "refs/tags"});
    command.outputLimit = 32 << 20;  // of 20,000 names, each at most 1 KiB or so
    return runGit(loop, kj::mv(command)).then([this](GitResult result) {
      if (!result.ok()) refuse(fmt::format("the refs of {} cannot be listed: {}", checkout.path, result.why()), "");
      takeRefs(result.output);
      if (refs.size() <= mostRefs) return;
      logInfo("{} has more than {} remote branches and tags: they are not copied", checkout.path, mostRefs);
      refs.clear();
      symbolic.clear();
    });
  }

  void takeRefs(const std::string& listing) {
    for (size_t at = 0; at < listing.size();) {
      size_t end = std::min(listing.find('\n', at), listing.size());
      auto line = listing.substr(at, end - at);
      at = end + 1;
      auto afterId = line.find(' ');
      auto afterName = line.find(' ', afterId + 1);
      if (afterName == std::string::npos) continue;
      auto name = line.substr(afterId + 1, afterName - afterId - 1);
      auto target = line.substr(afterName + 1);
      if (target.empty()) {
        refs.push_back({line.substr(0, afterId), name});
      } else if (target.starts_with("refs/remotes/")) {
        symbolic.push_back({target, name});
      }
    }
  }

  // One git packs, reusing what is packed there; the other writes it down here. Between them is a pipe and nothing of
  // ours.
  kj::Promise<void> copyObjects() {
    auto pipe = makePipe();
    auto pack = inCheckout({"pack-objects", "--revs", "--stdout", "--delta-base-offset", "--progress"});
    pack.input = start + "\n";
    for (auto& ref : refs) pack.input += ref.id + "\n";
    pack.outputFd = kj::mv(pipe.second);
    auto index = inWorkspace({"index-pack", "--stdin", "-v"});
    index.inputFd = kj::mv(pipe.first);

    auto packed = runGit(loop, kj::mv(pack));
    return must(kj::mv(index), "writing objects to").then([this, packed = kj::mv(packed)](std::string) mutable {
      return packed.then([this](GitResult result) {
        if (!result.ok()) {
          refuse(fmt::format("the objects of {} cannot be read: {}", checkout.path, result.why()),
                 "git fsck there tells what is broken");
        }
      });
    });
  }

  // As packed-refs: one file, however many there are. for-each-ref lists them in the order that it must have.
  void writeRefs() {
    std::string packed = "# pack-refs with: sorted \n";
    for (auto& ref : refs) packed += ref.id + " " + ref.name + "\n";
    if (!refs.empty()) writeNew("packed-refs", packed);
    for (auto& [target, name] : symbolic) {
      makeDirectories(gitDir + "/" + name.substr(0, name.rfind('/')), 0755);
      writeNew(name, "ref: " + target + "\n");
    }
  }

  kj::Promise<void> createBranch() {
    auto command = inWorkspace({"update-ref", "-m", "open-conduit: workspace of " + checkout.path,
                                "refs/heads/" + order.branch, start, std::string(start.size(), '0')});
    return must(kj::mv(command), "creating the branch in").ignoreResult();
  }

  kj::Promise<void> checkOut() {
    auto command = inWorkspace({"checkout", "--force", "--progress", order.branch, "--"});
    command.workTree = order.workspace;
    return must(kj::mv(command), "checking out files to").ignoreResult();
  }

  GitCommand inWorkspace(std::vector<std::string> arguments) const {
    GitCommand command;
    command.arguments = std::move(arguments);
    command.gitDir = gitDir;
    return command;
  }

  static constexpr size_t mostRefs = 20000;

  std::string gitDir;
  std::vector<Ref> refs;
  std::vector<std::pair<std::string, std::string>> symbolic;  // target, name
};

}  // namespace

kj::Promise<OrRefusal<WorkspaceFacts>> cloneWorkspace(const Loop& loop, WorkspaceOrder order) {
  auto cloning = kj::heap<Cloning>(loop, std::move(order));
  auto promise = cloning->run();
  return promise.attach(kj::mv(cloning));
}

}  // namespace oc::git
