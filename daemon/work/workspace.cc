#include "workspace.h"

#include <kj/debug.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
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

kj::Promise<OrRefusal<Workspaces::Made>> Workspaces::make(const state::WorkRow& work, int log) {
  auto startCloner = [this, work, log]() {
    auto role = work.workspaceMode == "worktree" ? "worktree" : "clone";
    return supervisor.start(describe(work, role, true, true, log));
  };
  auto clone = [this, work](kj::Promise<kj::Own<Instance>> cloner) -> kj::Promise<OrRefusal<Made>> {
    return cloner.then([this, work](kj::Own<Instance> instance) -> kj::Promise<OrRefusal<Made>> {
      auto git = instance->as<proto::Git>();
      auto toResult = [](auto&& response) -> OrRefusal<Made> {
        if (isRefused(response)) return read(response.getRefusal());
        auto workspace = response.getWorkspace();
        return Made{toString(workspace.getBase()), toString(workspace.getBranch()), toString(workspace.getFrom())};
      };
      kj::Promise<OrRefusal<Made>> made = nullptr;
      if (work.workspaceMode == "worktree") {
        auto request = git.worktreeRequest();
        request.setBranch(toText(work.branch));
        made = request.send().then(toResult);
      } else {
        auto request = git.cloneRequest();
        request.setBranch(toText(work.branch));
        made = request.send().then(toResult);
      }
      return withDeadline(supervisor.timer(), longLimit, "git", kj::mv(made)).attach(kj::mv(instance));
    });
  };
  // Whoever clones gets ready meanwhile, and is asked when the checkout was found to be good.
  auto inspect = [this, work, log, startCloner, clone]() -> kj::Promise<OrRefusal<Made>> {
    auto cloner = startCloner().eagerlyEvaluate(nullptr);
    return supervisor.start(describe(work, "inspect", true, false, log))
        .then(
            [this, clone, cloner = kj::mv(cloner)](kj::Own<Instance> instance) mutable -> kj::Promise<OrRefusal<Made>> {
              auto asked = instance->as<proto::Git>().inspectRequest().send().then(
                  [](auto&& response) -> Refusal { return read(response.getRefusal()); });
              return withDeadline(supervisor.timer(), shortLimit, "git", kj::mv(asked))
                  .attach(kj::mv(instance))
                  .then([clone, cloner = kj::mv(cloner)](Refusal refusal) mutable -> kj::Promise<OrRefusal<Made>> {
                    if (!refusal.reason.empty()) return OrRefusal<Made>(refusal);
                    return clone(kj::mv(cloner));
                  });
            });
  };
  return orFailed<Made>(kj::evalNow([&]() -> kj::Promise<OrRefusal<Made>> {
    makePrivateDirectory(places.workDir(work.id));
    // An earlier attempt may have died half-way.
    return remove(work).then([inspect](OrRefusal<bool> removed) -> kj::Promise<OrRefusal<Made>> {
      if (!removed.ok()) return OrRefusal<Made>(removed.refusal());
      return inspect();
    });
  }));
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
  return orFailed<Warnings>(
      supervisor.start(describe(work, "scan", false, true, -1))
          .then([this](kj::Own<Instance> instance) -> kj::Promise<OrRefusal<Warnings>> {
            auto asked =
                instance->as<proto::Git>().scanRequest().send().then([](auto&& response) -> OrRefusal<Warnings> {
                  if (isRefused(response)) return read(response.getRefusal());
                  Warnings warnings;
                  for (auto text : response.getWarnings()) {
                    if (warnings.size() < 100) warnings.push_back(toString(text));
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

kj::Promise<OrRefusal<Workspaces::Saved>> transfer(Ends& ends, const state::WorkRow& work, const std::string& old,
                                                   const std::string& tip, uint32_t commits,
                                                   const std::string& otherwise) {
  auto receive = ends.receiver->as<proto::Git>().receiveRequest();
  receive.setBranch(toText(work.savedAs.empty() ? work.branch : work.savedAs));
  receive.setOld(toText(work.savedTip.empty() ? std::string(tip.size(), '0') : work.savedTip));
  receive.setTip(toText(tip));
  receive.setOtherwise(toText(otherwise));
  auto received = receive.send().then([tip, commits](auto&& response) -> OrRefusal<Workspaces::Saved> {
    if (isRefused(response)) return read(response.getRefusal());
    return Workspaces::Saved{tip, toString(response.getSavedAs()), commits};
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
                     pipe->first = nullptr;
                     pipe->second = nullptr;
                     return transfer(endsRef, work, old, tip, response.getCommits(), work.branch + "-" + run);
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
