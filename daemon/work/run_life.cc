#include "run_life.h"

#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/log.h"
#include "base/text.h"
#include "clock.h"
#include "messages.h"
#include "verdict.h"

namespace oc::work {

using state::Outcome;
using state::RunState;

namespace {

constexpr size_t maxNotes = 64;
constexpr size_t maxDenials = 64;

bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}
}  // namespace

RunLife::RunLife(RunDependencies& dependencies, state::RunRow runParam)
    : deps(dependencies),
      run(std::move(runParam)),
      agentStarted(kj::mv(agentStart.promise).fork()),
      ended(kj::mv(endPair.promise).fork()) {
  auto found = deps.store.work(run.work);
  KJ_REQUIRE(found.has_value(), "a run without its Work", run.id.c_str());
  work = *found;
}

RunLife::~RunLife() noexcept(false) = default;

kj::Promise<void> RunLife::live() {
  auto steps = [this]() -> kj::Promise<void> {
    switch (run.state) {
      case RunState::Queued:
      case RunState::Preparing: return prepare();
      case RunState::Running: return takeUp();
      case RunState::Saving: return save();
      case RunState::Cleaning: return clean();
      case RunState::Ended: return kj::READY_NOW;
    }
    KJ_UNREACHABLE;
  };
  return kj::evalNow(steps)
      .catch_([this](kj::Exception&& exception) -> kj::Promise<void> {
        // A step of ours failed: the database's disk, a directory that cannot be made. The commits are not given up for
        // it.
        if (agent.get() != nullptr) agent->kill(run.shimPid);
        agent = nullptr;
        bool mayHaveCommits = run.state == RunState::Running;
        logError("run {}: {}", run.id, describe(exception));
        conclude(Outcome::Interrupted, "internal_error", describe(exception));
        return mayHaveCommits ? save() : clean();
      })
      .catch_([this](kj::Exception&& exception) {
        logError("run {} could not be ended in order: {}", run.id, describe(exception));
        conclude(Outcome::Interrupted, "internal_error", describe(exception));
      })
      .then([this]() { return finishRow(); })
      .then([this]() { endPair.fulfiller->fulfill(); });
}
void RunLife::agentIsThere() { agentStart.fulfiller->fulfill(); }

kj::Promise<Injected> RunLife::inject(std::string id, std::string text) {
  bool ending = over() || run.stopAsked || run.state == RunState::Saving || run.state == RunState::Cleaning;
  if (ending) return Injected{false, "the run is ending"};
  auto given = [this, id, text]() -> kj::Promise<Injected> {
    if (agent.get() == nullptr || over()) return Injected{false, "the run ended before its agent could be told"};
    return agent->inject(id, text).then([this, id](Injected injected) {
      if (!injected.delivered) return injected;
      auto messages = readMessages(deps.places, run.id);
      messages.injected.push_back(id);
      writeMessages(deps.places, run.id, messages);
      return injected;
    });
  };
  // Who asked may wait longer than this run is there.
  return injections.wrap(agentStarted.addBranch().exclusiveJoin(ended.addBranch()).then(kj::mv(given)))
      .catch_([](kj::Exception&&) {
        return Injected{false, "the run has ended"};
      });
}

void RunLife::stop(proto::StopReason why) {
  if (run.state == RunState::Saving) return hurrySave();
  if (over()) return;
  run.stopAsked = true;
  tryPersist();  // stopping does not wait for a disk
  if (agent.get() == nullptr) return;
  agent->stop(why);
  insistOnEnd();
}

// A shim that hangs, or was taken over, need not do what it is told: then it is killed, and with it the agent.
void RunLife::insistOnEnd() {
  if (insisting) return;
  insisting = true;
  constexpr uint64_t beyondGrace = 15;
  insistence = deps.supervisor.timer()
                   .afterDelay((deps.config().settings.graceSeconds + beyondGrace) * kj::SECONDS)
                   .then([this]() { onLost("the run's shim did not stop it, and was killed"); })
                   .eagerlyEvaluate([](kj::Exception&& exception) { logError("{}", describe(exception)); });
}

// ---- what the shim tells: in the database when these return

template <typename Change>
kj::Promise<void> RunLife::noteOnce(uint64_t seq, Change&& change) {
  if (seq <= run.lastSeq) return kj::READY_NOW;
  run.lastSeq = seq;
  change();
  return persist();
}

kj::Promise<void> RunLife::onNote(uint64_t seq, const std::string& text) {
  return noteOnce(seq, [&]() { addNote(text); });
}

kj::Promise<void> RunLife::onSession(uint64_t seq, const std::string& session) {
  return noteOnce(seq, [&]() {
    run.session = session;
    work.session = session;
    updateWork();
  });
}

kj::Promise<void> RunLife::onUsage(uint64_t seq, const state::Usage& usage) {
  return noteOnce(seq, [&]() { run.usage = usage; });
}

kj::Promise<void> RunLife::onNetwork(uint64_t seq, const state::NetworkTotals& totals) {
  return noteOnce(seq, [&]() { run.network = totals; });
}

kj::Promise<void> RunLife::onDenied(uint64_t seq, const state::Denial& denial) {
  return noteOnce(seq, [&]() {
    if (run.denied.size() < maxDenials) run.denied.push_back(denial);
  });
}

kj::Promise<void> RunLife::onEnded(uint64_t seq, const AgentEnd& end) {
  if (seq <= run.lastSeq || over()) return kj::READY_NOW;
  run.lastSeq = seq;
  endToolbelt();
  judgeEnd(end);
  return moveTo(RunState::Saving).then([this]() { agentEnd.fulfiller->fulfill(); });
}

// What the executor says goes before the exit status, unless something of ours stopped the run.
void RunLife::judgeEnd(const AgentEnd& end) {
  if (concludedByPolicy()) return;
  auto& process = end.process;
  if (process.known && !process.signaled && end.stopped == proto::StopReason::NONE) run.exitCode = process.code;
  // The agent can remove its mark; it then says of itself that it never ran.
  bool started = plan.startedMarker.empty() || isThere(plan.startedMarker);
  auto verdict = judge(end, started, run.id, run.policyKind == "docker");
  conclude(verdict.outcome, verdict.reason, verdict.message);
  run.fix = withoutSecrets(verdict.fix);
  if (verdict.reason != "session_lost") return;
  work.session.clear();
  updateWork();
}

bool RunLife::concludedByPolicy() {
  if (policyTrouble.empty()) return false;
  conclude(Outcome::Interrupted, "policy_changed",
           "what it ran with was not known to be its pinned policy any more, and it was stopped: " + policyTrouble);
  return true;
}

void RunLife::onLost(const std::string& why) {
  if (over()) return;
  if (!concludedByPolicy()) conclude(Outcome::Interrupted, "provider_failed", why);
  endToolbelt();
  agent->kill(run.shimPid);
  agentEnd.fulfiller->fulfill();
}
// ---- the row

void RunLife::refuse(const Refusal& refusal) {
  if (over()) return;
  conclude(Outcome::Refused, refusal.reason, refusal.what);
  run.fix = withoutSecrets(refusal.fix);
}

// The first outcome stays.
void RunLife::conclude(Outcome outcome, const std::string& reason, const std::string& message) {
  if (over()) return;
  run.outcome = outcome;
  run.reason = reason;
  run.message = withoutSecrets(message);
  // Who reads of it is sent to our log, which tells when it was, and what else happened then.
  if (reason == "provider_failed") logWarning("run {}: {}", run.id, printable(run.message));
}

kj::Promise<void> RunLife::moveTo(RunState state) {
  run.state = state;
  return persist().then([this]() {
    if (deps.hooks.onState) deps.hooks.onState(work, run);
  });
}

// A full disk is often the agent's own doing and passes; what is true stays in memory, and with the shim, until then.
kj::Promise<void> RunLife::persist() {
  if (tryPersist()) return kj::READY_NOW;
  return deps.supervisor.timer().afterDelay(2 * kj::SECONDS).then([this]() { return persist(); });
}

bool RunLife::tryPersist() {
  std::string trouble;
  try {
    deps.store.updateRun(run);
    persistTrouble.clear();
    return true;
  } catch (const kj::Exception& exception) {
    trouble = describe(exception);
  } catch (const std::exception& exception) {
    trouble = exception.what();
  }
  if (trouble != persistTrouble) {  // it is tried every two seconds, and told once
    logError("run {}: the database cannot be written, and is tried again: {}", run.id, trouble);
  }
  persistTrouble = trouble;
  return false;
}

// Our row of it is a copy: who ends the Work meanwhile says so in the database alone.
void RunLife::updateWork() {
  if (auto current = deps.store.work(work.id)) work.state = current->state;
  deps.store.updateWork(work);
}

void RunLife::addNote(const std::string& text) {
  if (run.notes.size() < maxNotes) run.notes.push_back(withoutSecrets(text));
}

}  // namespace oc::work
