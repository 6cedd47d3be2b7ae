// How Work ends: finished or cancelled, once its commits are saved; also what an earlier daemon had begun to end.
#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "base/aside.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "clock.h"
#include "scheduler.h"

namespace oc::work {

namespace {

using Scanned = OrRefusal<std::vector<std::string>>;

}  // namespace

using state::RunState;
using state::WorkState;

void Scheduler::finishWhenQuiet(const std::string& id) {
  auto work = theStore->work(id);
  if (!work || work->state != WorkState::Open || ending.count(id) != 0) return;
  work->finishAsked = true;
  theStore->updateWork(*work);
  for (auto& run : theStore->runsOf(id)) {
    if (run.state == RunState::Queued && live.count(run.id) == 0) (void)stopRun(run.id);
  }
  // Each has a row of its own of the Work.
  for (auto& [run, life] : live) {
    if (life->row().work == id) life->finishWorkAfterwards();
  }
  finishIfAsked(id);
}

kj::Promise<OrRefusal<bool>> Scheduler::endWork(std::string id, bool cancel, bool discard) {
  auto work = theStore->work(id);
  if (!work)
    return OrRefusal<bool>(
        Refusal{"not_found", fmt::format("there is no work {}", printable(id)), "open-conduit work list"});
  if (work->state == WorkState::Finished || work->state == WorkState::Cancelled) {
    return OrRefusal<bool>(Refusal{"work_ended", fmt::format("Work {} has ended already", id), ""});
  }
  auto* life = liveRunOf(id);
  if (life != nullptr && !cancel) {
    return OrRefusal<bool>(Refusal{"work_busy", fmt::format("run {} of Work {} is alive", life->row().id, id),
                                   fmt::format("wait for it, or: open-conduit work cancel {}", id)});
  }
  if (attached.count(id) != 0) {
    return OrRefusal<bool>(Refusal{"work_busy", fmt::format("somebody is attached to Work {}", id), "end that first"});
  }
  if (ending.count(id) != 0) {
    return OrRefusal<bool>(Refusal{"work_busy", fmt::format("Work {} is being ended", id), "wait a moment"});
  }
  work->state = cancel ? WorkState::Cancelling : WorkState::Finishing;
  theStore->updateWork(*work);
  return finishEnding(id, discard);
}

// From Finishing or Cancelling to the end; also after a restart.
kj::Promise<OrRefusal<bool>> Scheduler::finishEnding(std::string id, bool discard) {
  ending.insert(id);
  for (auto& run : theStore->runsOf(id)) {
    if (run.state != RunState::Queued || live.count(run.id) != 0) continue;
    run.stopAsked = true;
    theStore->updateRun(run);
    begin(run);  // it ends at once, as stopped
  }
  kj::Promise<void> quiet = kj::READY_NOW;
  if (auto* life = liveRunOf(id)) {
    life->stop(proto::StopReason::ASKED);
    quiet = life->whenEnded();
  }
  return quiet.then([this, id, discard]() { return removeWork(*theStore->work(id), discard); })
      .then(
          [this, id](OrRefusal<bool> result) {
            ending.erase(id);
            if (result.ok()) return result;
            auto work = *theStore->work(id);
            work.state = WorkState::Open;
            theStore->updateWork(work);
            return result;
          },
          [this, id](kj::Exception&& exception) -> OrRefusal<bool> {
            ending.erase(id);
            return Refusal{"workspace_failed", describe(exception), "see the daemon's log"};
          });
}

// Its commits are saved once more, what is dangerous in it is noted, and then it goes.
kj::Promise<OrRefusal<bool>> Scheduler::removeWork(state::WorkRow work, bool discard) {
  bool nothing = !work.workspaceMade || work.checkout.empty() || work.base.empty() || removalHasBegun(work.id);
  auto ready = nothing ? kj::Promise<OrRefusal<bool>>(OrRefusal<bool>(true)) : saveLast(work, discard);
  return ready
      .then([this, id = work.id](OrRefusal<bool> ready) -> kj::Promise<OrRefusal<bool>> {
        if (!ready.ok()) return ready;
        return removeWorkspace(*theStore->work(id));
      })
      .then([this, id = work.id](OrRefusal<bool> removed) -> kj::Promise<OrRefusal<bool>> {
        if (!removed.ok()) return removed;
        return removeFilesOf(*theStore->work(id)).then([this, id]() {
          noteEnd(*theStore->work(id));
          return OrRefusal<bool>(true);
        });
      });
}

// By a daemon that was killed: then nothing can be saved any more, and all was.
bool Scheduler::removalHasBegun(const std::string& id) const {
  auto isThere = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; };
  return isThere(options.places.workRemoving(id)) || !isThere(options.places.workDir(id));
}

kj::Promise<OrRefusal<bool>> Scheduler::saveLast(state::WorkRow work, bool discard) {
  return workspaces.save(work, "end", -1)
      .then([this, work, discard](OrRefusal<Workspaces::Saved> saved) mutable -> kj::Promise<Scanned> {
        if (!saved.ok() && discard) {
          return Scanned(
              std::vector<std::string>{"commits could not be saved before it was removed: " + saved.refusal().what});
        }
        if (!saved.ok()) {
          auto refusal = saved.refusal();
          refusal.fix = fmt::format("{}{}open-conduit work cancel --discard {} gives up what cannot be saved",
                                    refusal.fix, refusal.fix.empty() ? "" : "; or: ", work.id);
          return Scanned(refusal);
        }
        if (!saved.value().tip.empty()) {
          work.savedTip = saved.value().tip;
          work.savedAs = saved.value().savedAs;
          theStore->updateWork(work);
        }
        return workspaces.scan(work);
      })
      .then([this, id = work.id, discard](Scanned scanned) -> OrRefusal<bool> {
        // A hard link to the outside stops a run, not the workspace's removal; a save that failed does, unless it is
        // given up.
        bool closed = !scanned.ok() && scanned.refusal().reason == "sandbox_denied";
        if (!scanned.ok() && !discard && !closed) return scanned.refusal();
        auto current = *theStore->work(id);
        if (scanned.ok()) current.warnings = scanned.value();
        if (closed) current.warnings = {scanned.refusal().what};
        theStore->updateWork(current);
        return true;
      });
}

kj::Promise<OrRefusal<bool>> Scheduler::removeWorkspace(const state::WorkRow& work) {
  if (!work.workspaceMade || work.checkout.empty()) return OrRefusal<bool>(true);
  auto mark = options.places.workRemoving(work.id);
  if (!removalHasBegun(work.id)) writeFileAtomically(mark, "", 0600);
  return workspaces.remove(work).then([mark](OrRefusal<bool> removed) {
    if (!removed.ok()) unlink(mark.c_str());
    return removed;
  });
}

void Scheduler::noteEnd(state::WorkRow work) {
  work.state = work.state == WorkState::Cancelling ? WorkState::Cancelled : WorkState::Finished;
  work.endedAt = nowMs();
  work.workspaceMade = false;
  theStore->updateWork(work);
}

// Everything but the runs' logs, which stay as history. Agents have written most of it, and as much as they liked.
kj::Promise<void> Scheduler::removeFilesOf(const state::WorkRow& work) {
  std::vector<std::string> trees = {options.places.workDir(work.id)};
  if (!work.bodyFile.empty()) unlink(work.bodyFile.c_str());
  for (auto& run : theStore->runsOf(work.id)) {
    trees.push_back(options.places.runFiles(run.id));
    removeMessages(options.places, run.id);
  }
  return aside([trees = std::move(trees)]() {
    for (auto& tree : trees) removeTree(tree);
  });
}

// Its agent has said that the Work is done. With a run that lives or waits, somebody wants more of it.
void Scheduler::finishIfAsked(const std::string& id) {
  auto work = theStore->work(id);
  if (!work || !work->finishAsked || work->state != WorkState::Open || ending.count(id) != 0) return;
  if (attached.count(id) != 0) return;  // then afterwards
  auto runs = theStore->unendedRuns();
  bool more = std::any_of(runs.begin(), runs.end(), [&id](auto& run) { return run.work == id; });
  if (more) return;
  tasks.add(endWork(id, false, false).then([this, id](OrRefusal<bool> finished) {
    if (finished.ok()) return;
    logWarning("Work {} was to be finished by its agent's word: {}", id, finished.refusal().what);
    auto work = *theStore->work(id);
    work.finishAsked = false;  // what keeps it has to be seen to by a person
    theStore->updateWork(work);
  }));
}

}  // namespace oc::work
