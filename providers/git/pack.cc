// The packing side of a save. The workspace's own .git/config could name programs to run, other places to read and a
// server to ask for missing objects; its refs, replacements, grafts and commit graph could lie. So git gets a directory
// made here, with a config of ours and no refs, and of the workspace only the object directory. Landlock keeps what
// that links to out of reach.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "hostile_ref.h"
#include "object_files.h"
#include "save.h"
#include "task.h"
#include "tree_remover.h"

namespace oc::git {

namespace {

class HostileTask : protected Task {
 protected:
  HostileTask(const Loop& loop, std::string workspace, std::string view)
      : Task(loop, "save_failed"), workspace(std::move(workspace)), view(std::move(view)) {}

  void requireRepository() {
    struct stat stats;
    if (lstat(workspace.c_str(), &stats) < 0)
      refuse(fmt::format("{} cannot be looked at: {}", workspace, strerror(errno)), "");
    requireDirectory(".git");
    requireDirectory(".git/objects");
    // Ours had none: somebody put them there, and they may point anywhere.
    for (const char* name : {"alternates", "http-alternates"}) {
      int fd = openBeneath(workspace, fmt::format(".git/objects/info/{}", name), O_PATH);
      if (fd < 0) continue;
      close(fd);
      refuse(fmt::format("{}/.git/objects/info/{} was added: the repository's objects are elsewhere", workspace, name),
             "if you trust it: git repack -a -d in the workspace, and remove that file");
    }
    auto odd = oddObjectFile(workspace + "/.git/objects");
    if (!odd.empty()) {
      refuse(fmt::format("{}/.git/objects/{} is not a file or a directory of git's", workspace, shown(odd)),
             "the run put it there; look at the workspace before you use it, and remove that");
    }
  }

  // Before the first git: with `base`'s kind of ids.
  void makeView(bool sha256) {
    if (mkdir(view.c_str(), 0700) < 0 && errno != EEXIST) KJ_FAIL_SYSCALL("mkdir", errno, view);
    for (const char* part : {"/objects", "/refs"}) KJ_SYSCALL(mkdir((view + part).c_str(), 0700), view);
    write("HEAD", "ref: refs/heads/none\n");
    write("config", fmt::format("[core]\n\trepositoryformatversion = {}\n\tbare = true\n{}", sha256 ? 1 : 0,
                                sha256 ? "[extensions]\n\tobjectformat = sha256\n" : ""));
  }

  // Also of what an instance that was killed has left. The directory itself stays: Landlock's rule is for this very
  // one.
  kj::Promise<void> clearView() { return removeTreeInSteps(loop.timer, view, true); }

  GitCommand onObjects(std::vector<std::string> arguments) const {
    GitCommand command;
    // What the checkout itself lacks, a shallow checkout, is behind `base`: nothing needs the hostile shallow file.
    command.arguments = {"--shallow-file", ""};
    command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
    command.gitDir = view;
    command.objectDirectory = workspace + "/.git/objects";
    // Derived data in the object directory, which could say something else than the objects.
    command.settings = {{"core.commitGraph", "false"}, {"core.multiPackIndex", "false"}, {"pack.useBitmaps", "false"}};
    return command;
  }

  // Nothing of `base` need be sent. When the workspace has lost it, everything is.
  kj::Promise<bool> has(const std::string& commit) {
    auto question = onObjects({"cat-file", "-e", commit + "^{commit}"});
    question.quiet = true;
    return runGit(loop, kj::mv(question)).then([](GitResult result) { return result.ok(); });
  }

  template <typename T>
  kj::Promise<OrRefusal<T>> andClearView(kj::Promise<OrRefusal<T>> answer) {
    return answer.then([this](OrRefusal<T> answer) {
      return clearView()
          .catch_([](kj::Exception&&) {})  // the next one, or `remove`, clears it
          .then([answer = kj::mv(answer)]() mutable { return kj::mv(answer); });
    });
  }

  std::string workspace, view;

 private:
  void requireDirectory(const std::string& name) {
    int fd = openBeneath(workspace, name, O_PATH | O_DIRECTORY);
    if (fd < 0) {
      refuse(fmt::format("{}/{} is not a directory of its own: {}", workspace, name, strerror(errno)),
             "the run replaced it; look at the workspace before you use it");
    }
    close(fd);
  }

  void write(const char* name, const std::string& text) {
    auto fd = openFile(view + "/" + name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    writeAll(fd.get(), text);
  }
};

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
             "look at the workspace: git fsck there tells what is broken");
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
             "look at the workspace: git fsck there tells what is broken");
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
