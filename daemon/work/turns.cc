// A Work's turns: messages that come for it, and runs that are tried again.
#include "turns.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "clock.h"
#include "daemon/config/playbook.h"
#include "scheduler.h"

namespace oc::work {

using state::Outcome;
using state::RunState;
using state::WorkState;

namespace {

constexpr int64_t firstPause = 5'000, longestPause = 300'000;

const std::set<std::string> mendable = {"exit_status",     "signal",         "timeout",     "stalled",
                                        "api_error",       "retry_storm",    "agent_error", "mcp_failed",
                                        "provider_failed", "internal_error", "interrupted", "orphaned"};

Refusal ofWork(const char* reason, const std::string& id, const char* what) {
  return {reason, fmt::format("Work {} {}", id, what), "open-conduit work get " + id};
}

}  // namespace

int64_t earliestStart(const state::RunRow& run) {
  if (run.attempt <= 1) return 0;
  auto pause = firstPause;
  for (uint32_t i = 2; i < run.attempt && pause < longestPause; ++i) pause *= 2;
  return run.createdAt + std::min(pause, longestPause);
}

bool mayMendByRetrying(const state::RunRow& ended) {
  bool failed = ended.outcome == Outcome::Failed || ended.outcome == Outcome::Interrupted;
  return failed && !ended.stopAsked && mendable.count(ended.reason) != 0;
}

// ---- messages

kj::Promise<OrRefusal<control::Said>> Scheduler::sayWork(std::string id, std::string text) {
  // The API takes no message of blanks, either.
  if (text.find_first_not_of(" \t\r\n") == text.npos)
    return OrRefusal<control::Said>(Refusal{"request_invalid", "there is nothing to say", "give a text"});
  return hand(std::move(id), {newId("say-"), "", std::move(text)}, ActivePolicy::Inject);
}

std::optional<Refusal> Scheduler::refuseTurn(const std::string& id, const std::optional<state::WorkRow>& work) {
  if (!work) return Refusal{"not_found", "there is no work " + printable(id), "open-conduit work list"};
  if (work->state == WorkState::Finished || work->state == WorkState::Cancelled) {
    return ofWork("work_ended", id, "has ended, with its workspace");
  }
  if (work->state != WorkState::Open || ending.count(id) != 0) return ofWork("work_busy", id, "is being ended");
  if (draining) return Refusal{"draining", "the daemon is being drained and takes no new work", "start it again"};
  return std::nullopt;
}

// What GitHub tells may come twice. An operator's own is new, and no run's messages are looked through for it.
kj::Promise<OrRefusal<control::Said>> Scheduler::deliver(std::string id, Message message, ActivePolicy policy) {
  auto work = theStore->work(id);
  if (auto refusal = refuseTurn(id, work)) return OrRefusal<control::Said>(*refusal);
  if (auto had = findMessage(*theStore, options.places, id, message.id))
    return OrRefusal<control::Said>(control::Said{*had, false});
  return hand(std::move(id), std::move(message), policy);
}

kj::Promise<OrRefusal<control::Said>> Scheduler::hand(std::string id, Message message, ActivePolicy policy) {
  using Result = OrRefusal<control::Said>;
  auto work = theStore->work(id);
  if (auto refusal = refuseTurn(id, work)) return Result(*refusal);
  if (message.text.size() > mostMessageBytes) {
    return Result(
        Refusal{"request_invalid", "the message has more than 1 MiB", "put what is large into the repository"});
  }
  auto* life = liveRunOf(id);
  if (life == nullptr || policy == ActivePolicy::Queue) return queueTurn(*work, message);
  auto run = life->row().id;
  if (policy == ActivePolicy::Ignore) return Result(control::Said{run, false});
  auto* binding = config.findBinding(work->scope + "/" + work->binding);
  if (binding == nullptr || !takesMessages(binding->executor)) return queueTurn(*work, message);
  auto text = message.author.empty() ? message.text : config::quotedText(message.author, message.text);
  return life->inject(message.id, text).then([this, id, message, run](Injected injected) -> Result {
    if (injected.delivered) return control::Said{run, true};
    logInfo("a message for Work {} waits for its next run: {}", id, injected.why);
    auto work = theStore->work(id);
    if (auto refusal = refuseTurn(id, work)) return *refusal;
    return queueTurn(*work, message);
  });
}

// Messages that wait for the same run to end begin one run together.
OrRefusal<control::Said> Scheduler::queueTurn(const state::WorkRow& work, const Message& message) {
  std::string waiting;
  for (auto& run : theStore->unendedRuns()) {
    if (run.work != work.id || run.state != RunState::Queued || live.count(run.id) != 0 || run.stopAsked) continue;
    waiting = run.id;  // the last one: a message does not overtake those that had no room before it
  }
  if (!waiting.empty()) {
    auto messages = readMessages(options.places, waiting);
    if (hasRoomFor(messages, message)) {
      messages.first.push_back(message);
      writeMessages(options.places, waiting, messages);
      return control::Said{waiting, false};
    }
  }
  state::RunRow run;
  run.id = newId("r-");
  run.work = work.id;
  run.createdAt = nowMs();
  addTurn(run, {{message}, {}});
  return control::Said{run.id, false};
}

// The messages first: a row without them would begin without its text.
void Scheduler::addTurn(const state::RunRow& run, const RunMessages& messages) {
  writeMessages(options.places, run.id, messages);
  KJ_ON_SCOPE_FAILURE(removeMessages(options.places, run.id));
  theStore->addRun(run);
  wakeFor(run);
  tasks.add(kj::evalLater([this]() { startWhatMay(); }));
}

// ---- another try

// The next try is in the database before the end of this one is, so a daemon that dies in between loses neither.
void Scheduler::retryIfWorth(state::RunRow& ended) {
  auto work = theStore->work(ended.work);
  if (!work || work->state != WorkState::Open || work->finishAsked || ending.count(work->id) != 0) return;
  auto* binding = config.findBinding(work->scope + "/" + work->binding);
  // Without its session it had not begun; the next one begins anew, and cannot lose one.
  bool lostSession = ended.reason == "session_lost" && ended.attempt < 20;
  bool worth = binding != nullptr && ended.attempt <= binding->retries && mayMendByRetrying(ended);
  if (!lostSession && !worth) return;
  auto why = fmt::format("another try of run {}, which failed: {}", ended.id, ended.reason);
  for (auto& run : theStore->runsOf(work->id)) {
    if (!run.notes.empty() && run.notes.front() == why) return;  // from an earlier daemon
  }
  state::RunRow next;
  next.id = newId("r-");
  next.work = work->id;
  next.createdAt = nowMs();
  next.attempt = ended.attempt + 1;
  next.policyKind = ended.policyKind;
  next.notes = {why};
  addTurn(next, {readMessages(options.places, ended.id).first, {}});
  ended.notes.push_back(fmt::format("it is tried again as run {}", next.id));
}

void Scheduler::wakeFor(const state::RunRow& run) {
  auto wait = earliestStart(run) - nowMs();
  if (wait <= 0) return;
  // The loop's clock may be some milliseconds behind the one that rows have.
  tasks.add(supervisor.timer().afterDelay((wait + 1) * kj::MILLISECONDS).then([this, run]() {
    wakeFor(run);
    startWhatMay();
  }));
}

// ---- commands beside an agent

OrRefusal<control::ExecPlace> Scheduler::execPlace(std::string id) {
  auto work = theStore->work(id);
  if (!work) return Refusal{"not_found", "there is no work " + printable(id), "open-conduit work list"};
  // What it ran in decides, not what the binding says today.
  auto runs = theStore->runsOf(id);
  bool sandboxed = std::any_of(runs.begin(), runs.end(),
                               [](auto& run) { return !run.policyKind.empty() && run.policyKind != "none"; });
  if (sandboxed) {
    bool attachable = runs.back().policyKind == "docker";
    return Refusal{"attach_sandboxed",
                   fmt::format("Work {} ran in a sandbox; what its agent left there must not run on your machine", id),
                   attachable ? "enter its container by: open-conduit work attach " + id
                              : "look at its branch in your checkout; open-conduit work say gives its agent a message"};
  }
  if (!work->workspaceMade) return ofWork("work_ended", id, "has no workspace (any more, or yet)");
  auto& places = options.places;
  return control::ExecPlace{
      places.workspace(id),
      {{"OPEN_CONDUIT_WORK", id}, {"OPEN_CONDUIT_TITLE", work->title}, {"OPEN_CONDUIT_BRANCH", work->branch}}};
}

}  // namespace oc::work
