#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/change_time.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/sandbox/container.h"
#include "git.capnp.h"
#include "proto/convert.h"

namespace oc::work {

namespace {

// A large repository on a slow disk; beyond it something hangs.
constexpr auto longLimit = 2 * kj::HOURS;
constexpr auto shortLimit = 60 * kj::SECONDS;
// Every file is read for it, and the run waits.
constexpr auto comparingLimit = 10 * kj::SECONDS;
constexpr size_t mostNames = 5, longestName = 200;

using supervisor::Instance;

template <typename Response>
bool isRefused(Response& response) {
  return response.getRefusal().getReason().size() > 0;
}

Refusal workspaceFailed(const std::string& what) {
  return {"workspace_failed", what, "see the run's log; open-conduit doctor checks git and the providers"};
}

// A provider that could not start, or died: a refusal like any other, so that the run says why.
template <typename T>
kj::Promise<OrRefusal<T>> orFailed(kj::Promise<OrRefusal<T>> promise) {
  return promise.catch_([](kj::Exception&& exception) -> OrRefusal<T> { return workspaceFailed(describe(exception)); });
}

// ---- what git's instances answer becomes the Work's row, and words for other instances: it is what it has to be, or
// nothing

bool isCommitId(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

OrRefusal<Workspaces::Made> checkedMade(proto::Workspace::Reader from, const std::string& branch) {
  Workspaces::Made made{toString(from.getBase()), toString(from.getBranch()), toString(from.getFrom())};
  if (made.from.size() > longestName || hasControlCharacters(made.from)) made.from.clear();
  if (isCommitId(made.base) && made.branch == branch) return made;
  return workspaceFailed("the git provider made something else than it was asked for");
}

// The branch that was asked for, or the one to fall back on, with a number when that is taken.
bool isSavedBranch(const std::string& name, const std::string& branch, const std::string& otherwise) {
  if (name == branch || name == otherwise) return true;
  if (!name.starts_with(otherwise + "-")) return false;
  auto number = name.substr(otherwise.size() + 1);
  return !number.empty() && number.size() < 6 && number.find_first_not_of("0123456789") == std::string::npos;
}

constexpr size_t mostWarning = 4096;

// Its own time, which is the file system's, says when. Without it everything counts as changed since.
void markCloned(const std::string& path) {
  unlink(path.c_str());
  close(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

// In nanoseconds since 1970; 0 when there is no such file.
int64_t changeTimeOf(const std::string& path) {
  struct stat stats {};
  if (stat(path.c_str(), &stats) < 0) return 0;
  return changeTime(stats);
}

}  // namespace

supervisor::LaunchSpec Workspaces::describe(const state::WorkRow& work, const std::string& role, bool checkout,
                                            bool workspace, int log) const {
  supervisor::LaunchSpec spec;
  spec.provider = "git";
  spec.label = role + " " + work.id;
  spec.job = {role};
  if (checkout) spec.job.insert(spec.job.end(), {"--checkout", work.checkout});
  if (workspace) spec.job.insert(spec.job.end(), {"--workspace", places.workspace(work.id)});
  if (checkout) spec.kept.push_back(work.checkout);
  if (workspace) spec.kept.push_back(places.workDir(work.id));
  spec.errors = log;
  return spec;
}

kj::Promise<OrRefusal<Workspaces::Made>> Workspaces::make(const state::WorkRow& work, int log, bool laidOut) {
  // The instance that dies makes it first.
  bool again = access(places.workspace(work.id).c_str(), F_OK) == 0;
  auto clone = [this, work, again, laidOut, log]() -> kj::Promise<OrRefusal<Made>> {
    auto role = work.workspaceMode == "worktree" ? "worktree" : "clone";
    return supervisor.start(describe(work, role, true, true, log))
        .then([this, work, again, laidOut](kj::Own<Instance> instance) -> kj::Promise<OrRefusal<Made>> {
          auto git = instance->as<proto::Git>();
          auto toResult = [branch = work.branch](auto&& response) -> OrRefusal<Made> {
            if (isRefused(response)) return read(response.getRefusal());
            return checkedMade(response.getWorkspace(), branch);
          };
          kj::Promise<OrRefusal<Made>> made = nullptr;
          if (work.workspaceMode == "worktree") {
            auto request = git.worktreeRequest();
            request.setBranch(toText(work.branch));
            request.setAgain(again);
            made = request.send().then(kj::mv(toResult));
          } else {
            auto request = git.cloneRequest();
            request.setBranch(toText(work.branch));
            request.setLaidOut(laidOut);
            made = request.send().then(kj::mv(toResult));
          }
          return withDeadline(supervisor.timer(), longLimit, "git", kj::mv(made)).attach(kj::mv(instance));
        });
  };
  auto made = kj::evalNow([&]() -> kj::Promise<OrRefusal<Made>> {
    makePrivateDirectory(places.workDir(work.id));
    if (laidOut || !mayBeHalfMade(work)) return clone();
    return remove(work).then([clone](OrRefusal<bool> removed) -> kj::Promise<OrRefusal<Made>> {
      if (!removed.ok()) return OrRefusal<Made>(removed.refusal());
      return clone();
    });
  });
  return orFailed<Made>(kj::mv(made)).then([this, id = work.id](OrRefusal<Made> answer) {
    // The instance was given an empty one to make it in, whatever it then thought of the checkout.
    if (!answer.ok()) rmdir(places.workspace(id).c_str());
    if (answer.ok()) markCloned(places.workCloned(id));
    return answer;
  });
}

void Workspaces::layOut(const Places& places, const std::string& work, bool repository) {
  auto workspace = places.workspace(work);
  auto folder = [](const std::string& path) { KJ_SYSCALL(mkdir(path.c_str(), 0755), path); };
  if (!repository) return makePrivateDirectory(workspace);
  folder(workspace);
  folder(workspace + "/.git");
  for (auto& part : sandbox::gitProtected) {
    auto path = workspace + "/.git/" + part.name;
    if (part.folder) {
      folder(path);
    } else {
      openFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    }
  }
}

// An earlier attempt may have died half-way. A worktree's entry in the checkout is not looked for here.
bool Workspaces::mayBeHalfMade(const state::WorkRow& work) const {
  return work.workspaceMode == "worktree" || access(places.workspace(work.id).c_str(), F_OK) == 0 || errno != ENOENT;
}

kj::Promise<uint32_t> Workspaces::missing(const state::WorkRow& work) {
  if (work.from.empty() || work.base.empty()) return uint32_t{0};
  return supervisor.start(describe(work, "inspect", true, false, -1))
      .then([this, work](kj::Own<Instance> instance) -> kj::Promise<uint32_t> {
        auto request = instance->as<proto::Git>().missingRequest();
        request.setBranch(toText(work.from));
        request.setTip(toText(work.savedTip.empty() ? work.base : work.savedTip));
        auto asked = request.send().then(
            [](auto&& response) -> uint32_t { return isRefused(response) ? 0 : response.getCommits(); });
        return withDeadline(supervisor.timer(), shortLimit, "git", kj::mv(asked)).attach(kj::mv(instance));
      })
      .catch_([work](kj::Exception&& exception) -> uint32_t {
        logWarning("Work {}: whether {} has moved on is not known: {}", work.id, printable(work.from),
                   oc::describe(exception));
        return 0;
      });
}

kj::Promise<OrRefusal<std::vector<std::string>>> Workspaces::scan(const state::WorkRow& work) {
  using Warnings = std::vector<std::string>;
  auto clonedAt = changeTimeOf(places.workCloned(work.id));
  return orFailed<Warnings>(
      supervisor.start(describe(work, "scan", false, true, -1))
          .then([this, clonedAt](kj::Own<Instance> instance) -> kj::Promise<OrRefusal<Warnings>> {
            auto request = instance->as<proto::Git>().scanRequest();
            request.setClonedAt(clonedAt);
            auto asked = request.send().then([](auto&& response) -> OrRefusal<Warnings> {
              if (isRefused(response)) return read(response.getRefusal());
              Warnings warnings;
              for (auto text : response.getWarnings()) {
                if (warnings.size() < 100) warnings.push_back(shortened(printable(toString(text)), mostWarning));
              }
              return warnings;
            });
            return withDeadline(supervisor.timer(), longLimit, "git", kj::mv(asked)).attach(kj::mv(instance));
          }));
}

namespace {

// The two ends of one save: an instance that sees only the workspace, and one that sees only the checkout.
struct Ends {
  kj::Own<Instance> packer, receiver;
};

// A file that lies in the Work's directory while a receiver may move the Work's branch. Who finds it there knows that
// the receiver was killed, or its end not heard of.
class SaveMark {
 public:
  explicit SaveMark(std::string path) : path(std::move(path)), found(access(this->path.c_str(), F_OK) == 0) {}

  bool wasThere() const { return found; }
  // On a full disk a save is worth more than its mark.
  void set() {
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) logWarning("{} cannot be made: {}", path, strerror(errno));
    kj::AutoCloseFd closed(fd);
  }
  void remove() { unlink(path.c_str()); }

 private:
  std::string path;
  bool found;
};

kj::Promise<OrRefusal<Workspaces::Saved>> transfer(Ends& ends, const state::WorkRow& work, const std::string& old,
                                                   const std::string& tip, uint32_t commits,
                                                   const std::string& otherwise, SaveMark mark) {
  auto receive = ends.receiver->as<proto::Git>().receiveRequest();
  auto branch = work.savedAs.empty() ? work.branch : work.savedAs;
  receive.setBranch(toText(branch));
  receive.setOld(toText(work.savedTip.empty() ? std::string(tip.size(), '0') : work.savedTip));
  receive.setTip(toText(tip));
  receive.setOtherwise(toText(otherwise));
  receive.setInterrupted(mark.wasThere());
  mark.set();
  auto received = receive.send().then(
      [tip, commits, branch, otherwise, mark](auto&& response) mutable -> OrRefusal<Workspaces::Saved> {
        mark.remove();
        if (isRefused(response)) return read(response.getRefusal());
        auto savedAs = toString(response.getSavedAs());
        if (isSavedBranch(savedAs, branch, otherwise)) return Workspaces::Saved{tip, savedAs, commits};
        return workspaceFailed("the git provider names a branch that was not asked for");
      });

  auto pack = ends.packer->as<proto::Git>().packRequest();
  pack.setTip(toText(tip));
  pack.setBase(toText(old));
  // The packer's process holds the pipe's end: it must go for the receiver to see the pack's end.
  auto packed = pack.send().then([&ends](auto&& response) -> Refusal {
    auto refusal = read(response.getRefusal());
    ends.packer = nullptr;
    return refusal;
  });
  return packed.then(
      [received = kj::mv(received)](Refusal refusal) mutable -> kj::Promise<OrRefusal<Workspaces::Saved>> {
        // Why the receiver stopped reading, the receiver knows.
        if (refusal.reason.empty() || refusal.reason == "receiver_gone") return kj::mv(received);
        return OrRefusal<Workspaces::Saved>(refusal);
      });
}

// For a run that committed nothing. A workspace of which that cannot be told in time has nothing to tell.
kj::Promise<OrRefusal<Workspaces::Saved>> lookForUncommitted(kj::Timer& timer, Ends& ends, const std::string& tip) {
  auto request = ends.packer->as<proto::Git>().uncommittedRequest();
  request.setTip(toText(tip));
  auto found = request.send().then([](auto&& response) -> OrRefusal<Workspaces::Saved> {
    Workspaces::Saved saved;
    saved.uncommitted = response.getCount();
    for (auto name : response.getNames()) {
      if (saved.uncommittedNames.size() < mostNames)
        saved.uncommittedNames.push_back(shortened(printable(toString(name)), longestName));
    }
    return saved;
  });
  return withDeadline(timer, comparingLimit, "git", kj::mv(found)).catch_([](kj::Exception&& exception) {
    logDebug("{}", describe(exception));
    return OrRefusal<Workspaces::Saved>(Workspaces::Saved{});
  });
}

}  // namespace

kj::Promise<OrRefusal<Workspaces::Saved>> Workspaces::save(const state::WorkRow& work, const std::string& run,
                                                           int log) {
  // A linked worktree commits into the checkout itself.
  if (work.workspaceMode != "clone") return OrRefusal<Saved>(Saved{});
  auto pipe = kj::heap<FdPair>(makePipe());
  auto packSpec = describe(work, "pack", false, true, log);
  packSpec.descriptors.emplace_back(pipe->second.get(), 1);
  auto receiveSpec = describe(work, "receive", true, false, log);
  receiveSpec.descriptors.emplace_back(pipe->first.get(), 0);
  auto old = work.savedTip.empty() ? work.base : work.savedTip;
  auto ends = kj::heap<Ends>();
  auto& endsRef = *ends;

  auto saved = supervisor.start(kj::mv(packSpec))
                   .then([this, &endsRef, receiveSpec = kj::mv(receiveSpec)](kj::Own<Instance> packer) mutable {
                     endsRef.packer = kj::mv(packer);
                     return supervisor.start(kj::mv(receiveSpec));
                   })
                   .then([&endsRef, work, old](kj::Own<Instance> receiver) {
                     endsRef.receiver = kj::mv(receiver);
                     auto request = endsRef.packer->as<proto::Git>().tipRequest();
                     request.setBranch(toText(work.branch));
                     request.setBase(toText(old));
                     return request.send();
                   })
                   .then([this, &endsRef, work, old, run,
                          pipe = kj::mv(pipe)](auto&& response) mutable -> kj::Promise<OrRefusal<Saved>> {
                     if (isRefused(response)) return OrRefusal<Saved>(read(response.getRefusal()));
                     auto tip = toString(response.getTip());
                     if (tip == old) return lookForUncommitted(supervisor.timer(), endsRef, tip);
                     if (!isCommitId(tip)) {
                       return OrRefusal<Saved>(workspaceFailed("the git provider names a branch's tip that is none"));
                     }
                     pipe->first = nullptr;
                     pipe->second = nullptr;
                     return transfer(endsRef, work, old, tip, response.getCommits(), work.branch + "-" + run,
                                     SaveMark(places.workSaving(work.id)));
                   });
  return orFailed<Saved>(withDeadline(supervisor.timer(), longLimit, "git", kj::mv(saved)).attach(kj::mv(ends)));
}

kj::Promise<OrRefusal<bool>> Workspaces::remove(const state::WorkRow& work) {
  bool worktree = work.workspaceMode == "worktree";
  auto start = [this, &work, worktree]() {
    // It was written before it was made, and may never have come to be (no descriptor, no room): the instance wants to
    // see it.
    makePrivateDirectory(places.workDir(work.id));
    return supervisor.start(describe(work, "remove", worktree, true, -1));
  };
  return orFailed<bool>(kj::evalNow(start).then([this](kj::Own<Instance> instance) -> kj::Promise<OrRefusal<bool>> {
    auto asked = instance->as<proto::Git>().removeRequest().send().then([](auto&& response) -> OrRefusal<bool> {
      if (isRefused(response)) return read(response.getRefusal());
      return true;
    });
    return withDeadline(supervisor.timer(), longLimit, "git", kj::mv(asked)).attach(kj::mv(instance));
  }));
}

}  // namespace oc::work
