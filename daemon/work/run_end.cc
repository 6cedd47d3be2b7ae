// What comes after the agent: its commits are saved, and nothing of the run is left.
#include "run_life.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/aside.h"
#include "base/fd.h"
#include "base/log.h"
#include "cgroup.h"
#include "clock.h"
#include "git_redirection.h"

namespace oc::work {

using state::Outcome;
using state::RunState;

namespace {

// A git instance that was killed is no reason to leave commits behind; one that dies each time is.
constexpr int mostSaves = 3;

// A few million files. What an agent leaves could take for ever, and is looked through once more before the next run.
constexpr auto lookingLimit = 10 * kj::SECONDS;
constexpr size_t mostTold = 5;

}  // namespace

kj::Promise<void> RunLife::save() {
  if (run.policyKind == "docker" && removeGitRedirection(deps.places.workspace(work.id))) {
    addNote("the agent made .git/commondir, which was removed: it would move git's config elsewhere");
  }
  return moveTo(RunState::Saving).then([this]() {
    beginRemoving();
    looking = lookThroughWorkspace().eagerlyEvaluate(nullptr);
    return saveCommits();
  });
}

// What a person, or their editor, would run by accident in there, before they go and look. An agent without a sandbox
// needs no such trap.
kj::Promise<void> RunLife::lookThroughWorkspace() {
  bool sandboxed = run.policyKind == "srt" || run.policyKind == "docker";
  if (!sandboxed || work.checkout.empty() || work.base.empty()) return kj::READY_NOW;
  using Scanned = OrRefusal<std::vector<std::string>>;
  auto tooLong = deps.supervisor.timer().afterDelay(lookingLimit).then([]() {
    return Scanned(Refusal{"", "it takes too long", ""});
  });
  return deps.workspaces.scan(work).exclusiveJoin(kj::mv(tooLong)).then([this](Scanned scanned) {
    if (scanned.ok()) {
      found = std::move(scanned.value());
    } else if (scanned.refusal().reason == "sandbox_denied") {
      found = {scanned.refusal().what};  // a hard link to the outside, or a part that it closed: no run begins then
    } else {
      addNote("its workspace could not be looked through for what would run by accident: " + scanned.refusal().what);
    }
  });
}

void RunLife::noteFound() {
  if (found.empty() && work.warnings.empty()) return;
  work.warnings = found;
  updateWork();
  std::string texts;
  for (size_t i = 0; i < std::min(found.size(), mostTold); ++i) texts += (i == 0 ? "" : "; ") + found[i];
  if (found.size() > mostTold) texts += fmt::format("; and {} more, in work get", found.size() - mostTold);
  if (!texts.empty()) addNote("beware in its workspace: " + texts);
}

kj::Promise<void> RunLife::saveCommits() {
  if (work.checkout.empty() || work.base.empty()) return clean();
  if (log.get() < 0) log = openFile(deps.places.runLog(run.id), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  auto given = kj::newPromiseAndFulfiller<OrRefusal<Workspaces::Saved>>();
  giveUpSave = kj::mv(given.fulfiller);
  auto saving = deps.workspaces.save(work, run.id, log.get()).exclusiveJoin(kj::mv(given.promise));
  return saving.then([this](OrRefusal<Workspaces::Saved> saved) {
    if (!saved.ok()) {
      bool providerDied = saved.refusal().reason == "workspace_failed";
      if (providerDied && ++savesThatDied < mostSaves) return saveCommits();
      noteUnsaved(saved.refusal());
    } else if (!saved.value().tip.empty()) {
      auto& result = saved.value();
      work.savedTip = result.tip;
      work.savedAs = result.savedAs;
      run.savedAs = result.savedAs;
      run.commits = result.commits;
      if (result.savedAs != work.branch) {
        addNote(fmt::format("the branch {} was moved or is checked out in the checkout: the commits are kept as {}",
                            work.branch, result.savedAs));
      }
      updateWork();
    } else {
      noteUncommitted(saved.value());
    }
    return kj::mv(looking).then([this]() {
      noteFound();
      return clean();
    });
  });
}

// Who sees no commits would else take it for nothing done, and finish the Work.
void RunLife::noteUncommitted(const Workspaces::Saved& saved) {
  if (saved.uncommitted == 0) return;
  std::string names;
  for (auto& name : saved.uncommittedNames) names += (names.empty() ? "" : ", ") + name;
  if (saved.uncommitted > saved.uncommittedNames.size()) names += ", …";
  addNote(fmt::format(
      "its branch has no new commit, and {} in its workspace {} new or changed ({}): they go with the workspace when "
      "the Work is finished, and so do commits on any other branch or on none",
      saved.uncommitted == 1 ? "1 file or folder" : fmt::format("{} files or folders", saved.uncommitted),
      saved.uncommitted == 1 ? "is" : "are", names));
}

// What an agent made of its repository may take for ever to read. A stop waits for it as long as for an agent, and then
// the commits stay in the workspace.
void RunLife::hurrySave() {
  if (giveUpSave.get() == nullptr || hurrying) return;
  hurrying = true;
  hurry = deps.supervisor.timer()
              .afterDelay(deps.config().settings.graceSeconds * kj::SECONDS)
              .then([this]() {
                giveUpSave->fulfill(Refusal{"save_stopped", "it was stopped while they were being saved", ""});
              })
              .eagerlyEvaluate(nullptr);
}

// A script that waits for success and takes the branch must not take it for saved.
void RunLife::noteUnsaved(const Refusal& refusal) {
  auto text = fmt::format(
      "the commits could not be saved to the checkout ({}); they are in the workspace, and are saved "
      "when the Work is finished",
      refusal.what);
  addNote(text);
  if (run.outcome != Outcome::Succeeded) return;
  run.outcome = Outcome::Failed;
  run.reason = "save_failed";
  run.message = "the job succeeded, but " + text;
  run.fix =
      fmt::format("{0}{1}then: open-conduit work finish {2}; or give them up: open-conduit work cancel --discard {2}",
                  refusal.fix, refusal.fix.empty() ? "" : "; ", run.work);
}

kj::Promise<void> RunLife::clean() {
  secrets.byVariable.clear();
  return moveTo(RunState::Cleaning)
      .then([this]() { return dropAhead(); })
      .then([this]() { return findShim(); })
      .then([this]() -> kj::Promise<void> {
        KJ_IF_MAYBE (begun, removing) return kj::mv(*begun);
        return kj::READY_NOW;
      })
      .then([this]() -> kj::Promise<void> {
        if (agent.get() == nullptr) return kj::READY_NOW;
        return agent->finish(deps.supervisor.timer());
      })
      .then([this]() {
        endLimits();
        return removing == nullptr ? removeContainers() : kj::Promise<void>(kj::READY_NOW);
      })
      .then([this]() { return removeLeftovers(); });
}

// Its groups, which are of no use without processes; after a restart of the daemon those that its plan names.
void RunLife::endLimits() {
  if (run.policyKind == "srt" && cgroups.empty() && plan.json.empty()) {
    auto pinned = pinnedPlan();
    auto sandbox = pinned ? pinned->at("sandbox") : Json::object();
    if (sandbox.contains("cgroups")) cgroups = sandbox.at("cgroups").get<std::vector<std::string>>();
  }
  for (auto& met : RunCgroups::remove(cgroups)) addNote(met);
  cgroups.clear();
}

// An earlier daemon may have died between learning the end and telling the shim that it may go: it would wait for ten
// minutes.
kj::Promise<void> RunLife::findShim() {
  if (agent.get() != nullptr) return kj::READY_NOW;
  auto key = deps.store.runKey(run.id);
  if (!key) return kj::READY_NOW;
  auto why = kj::heap<std::string>();
  auto& whyRef = *why;
  auto adopted =
      Agent::adopt(deps.supervisor.context(), deps.places.runSocket(run.id), *key, run.lastSeq, *this, whyRef, nullptr);
  return adopted.then([this, why = kj::mv(why)](kj::Maybe<kj::Own<Agent>> taken) {
    KJ_IF_MAYBE (found, taken) {
      agent = kj::mv(*found);
    } else {
      logDebug("run {}: no shim is left: {}", run.id, *why);
    }
  });
}

// An agent that has ended needs its containers no more. Its own instance of the Engine's client is at hand, and removes
// them while the commits are saved.
void RunLife::beginRemoving() {
  if (run.policyKind != "docker" || agent.get() == nullptr) return;
  auto docker = agent->docker();
  KJ_IF_MAYBE (client, docker) {
    // What goes wrong is cleaned up after.
    removing =
        removeBy(*client).catch_([](kj::Exception&& e) { logDebug("{}", describe(e)); }).eagerlyEvaluate(nullptr);
  }
}

kj::Promise<void> RunLife::removeContainers() {
  engine = nullptr;
  if (run.policyKind != "docker") return kj::READY_NOW;
  return removeBy(nullptr);
}

// Whatever there is of the run on its Engines.
kj::Promise<void> RunLife::removeBy(kj::Maybe<proto::Docker::Client> docker) {
  auto& engines = deps.containers.engines;
  kj::Vector<kj::Promise<void>> all;
  for (auto& socket : engineSockets()) {
    auto removed = [&]() {
      KJ_IF_MAYBE (client, docker) return engines.removeBy(*client, socket, run.id, preparedGateway);
      return engines.remove(socket, run.id, preparedGateway);
    }();
    all.add(removed.then([this, socket](std::vector<std::string> left) {
      for (auto& what : left) {
        addNote("left on the Docker Engine, and tried again later: " + what);
        bool gateways = !preparedGateway.empty() && what.find(preparedGateway) != std::string::npos;
        deps.onLeftover(socket, gateways ? preparedGateway : run.id, what);
      }
    }));
  }
  return kj::joinPromises(all.releaseAsArray());
}

// The one that its plan names; a run without a plan has made nothing on any. Where the plan cannot be trusted any more,
// all that the config has.
std::vector<std::string> RunLife::engineSockets() {
  if (run.planSha256.empty()) return {};
  if (auto pinned = pinnedPlan()) return {pinned->at("sandbox").at("engine").at("socket")};
  return deps.containers.sockets(deps.config());
}

// An agent may have left a million files, which are removed beside the loop.
kj::Promise<void> RunLife::removeLeftovers() {
  endToolbelt();
  agent = nullptr;
  log = nullptr;
  auto& places = deps.places;
  deps.store.dropRunKey(run.id);
  unlink(places.runSocket(run.id).c_str());
  unlink(places.runToolbelt(run.id).c_str());
  unlink(places.runSettings(run.id).c_str());
  return aside([secretFiles = places.runSecrets(run.id), files = places.runFiles(run.id)]() {
    removeTree(secretFiles);
    removeTree(files);
  });
}

kj::Promise<void> RunLife::finishRow() {
  if (run.outcome == Outcome::None) run.outcome = Outcome::Interrupted;
  run.endedAt = nowMs();
  deps.ending(run);
  return moveTo(RunState::Ended);
}

}  // namespace oc::work
