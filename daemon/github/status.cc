#include "status.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "lost_instance.h"
#include "proto/convert.h"

namespace oc::hub {

namespace {

constexpr auto callLimit = 180 * kj::SECONDS;
constexpr auto firstPause = 4 * kj::SECONDS;  // doubled after each
constexpr unsigned mostFailures = 10;         // an hour, in all

// A reason is one of our words; whatever else stands there is not repeated.
std::string wordOf(const std::string& reason) {
  bool word = !reason.empty() && reason.size() <= 64 &&
              std::all_of(reason.begin(), reason.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  return word ? reason : "unknown";
}

}  // namespace

std::string statusText(const state::WorkRow& work, const state::RunRow& run) {
  auto head = fmt::format("Work `{}`, run `{}`", work.id, run.id);
  auto where = fmt::format("On the machine that ran it, `open-conduit runs get {}` says more.", run.id);
  switch (run.outcome) {
    case state::Outcome::None: break;
    case state::Outcome::Succeeded: return fmt::format("{}: done.", head);
    case state::Outcome::Failed: return fmt::format("{}: failed (`{}`). {}", head, wordOf(run.reason), where);
    case state::Outcome::Refused: return fmt::format("{}: was not started (`{}`). {}", head, wordOf(run.reason), where);
    case state::Outcome::Stopped: return fmt::format("{}: was stopped.", head);
    case state::Outcome::Interrupted:
      return fmt::format("{}: was interrupted (`{}`). {}", head, wordOf(run.reason), where);
  }
  bool waits = run.state == state::RunState::Queued;
  return fmt::format("{}: {}", head, waits ? "waits for its turn." : "works on it.");
}

void Status::note(const state::WorkRow& work, const state::RunRow& run) {
  auto origin = store.origin(work.id);
  if (!origin || origin->connection != connection.spec().id) return;
  auto& entry = wanted[work.id];
  entry.text = statusText(work, run);
  entry.run = run.id;
  entry.issue = origin->issue;
  entry.repo = origin->repo;
  if (!entry.busy) write(work.id);
}

void Status::write(const std::string& work) {
  auto& entry = wanted[work];
  auto origin = store.origin(work);
  if (!origin || origin->statusText == entry.text) {
    wanted.erase(work);
    return;
  }
  entry.busy = true;
  auto text = entry.text;
  auto said = pastLostInstances<OrRefusal<uint64_t>>(
      connection.timer(),
      [this, work, text, comment = origin->statusComment](bool) { return say(work, text, comment); });
  tasks.add(withDeadline(connection.timer(), callLimit, "open-conduit-github", kj::mv(said))
                .catch_([](kj::Exception&& exception) -> OrRefusal<uint64_t> {
                  return Refusal{"github_unavailable", describe(exception), ""};
                })
                .then([this, work, text](OrRefusal<uint64_t> comment) {
                  if (!comment.ok()) return failed(work, comment.refusal());
                  store.setStatus(work, comment.value(), text);
                  wanted[work].busy = false;
                  wanted[work].failures = 0;
                  write(work);
                }));
}

kj::Promise<OrRefusal<uint64_t>> Status::say(const std::string& work, const std::string& text, uint64_t comment) {
  using Id = OrRefusal<uint64_t>;
  return connection.client().then(
      [this, work, text, comment](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<Id> {
        if (!client.ok()) return Id(client.refusal());
        auto& entry = wanted[work];
        auto request = client.value().setStatusRequest();
        auto bound = request.initBound();
        bound.setRepo(toText(entry.repo));
        bound.setIssue(entry.issue);
        bound.setWork(toText(work));
        bound.setRun(toText(entry.run));
        request.setComment(comment);
        request.setText(toText(text));
        return request.send().then([](auto&& answer) -> Id {
          auto refusal = oc::read(answer.getRefusal());
          if (!refusal.reason.empty()) return refusal;
          return answer.getComment();
        });
      });
}

// What GitHub refuses is said with the next change; what it did not answer, after a pause.
void Status::failed(const std::string& work, const Refusal& why) {
  logWarning("the status of Work {} could not be said on its issue: {}", work, why.what);
  auto& entry = wanted[work];
  bool passes = why.reason == "github_unavailable" || why.reason == "github_limited";
  if (!passes || entry.failures == mostFailures) {
    entry.busy = false;
    entry.failures = 0;
    return;
  }
  auto pause = firstPause * (1 << entry.failures++);
  tasks.add(connection.timer().afterDelay(pause).then([this, work]() {
    wanted[work].busy = false;
    write(work);
  }));
}

void Status::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::hub
