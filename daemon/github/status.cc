#include "status.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "proto/convert.h"

namespace oc::hub {

namespace {

constexpr auto callLimit = 180 * kj::SECONDS;

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
  auto comment = origin->statusComment;
  tasks.add(connection.client()
                .then([this, work, text, comment](OrRefusal<proto::GitHub::Client> client) -> kj::Promise<bool> {
                  if (!client.ok()) return false;
                  auto& entry = wanted[work];
                  auto request = client.value().setStatusRequest();
                  auto bound = request.initBound();
                  bound.setRepo(toText(entry.repo));
                  bound.setIssue(entry.issue);
                  bound.setWork(toText(work));
                  bound.setRun(toText(entry.run));
                  request.setComment(comment);
                  request.setText(toText(text));
                  auto sent = request.send().then([this, work, text](auto&& answer) {
                    auto refusal = oc::read(answer.getRefusal());
                    if (refusal.reason.empty()) store.setStatus(work, answer.getComment(), text);
                    if (!refusal.reason.empty())
                      logWarning("the status of Work {} could not be said on its issue: {}", work, refusal.what);
                    return refusal.reason.empty();
                  });
                  return withDeadline(connection.timer(), callLimit, "open-conduit-github", kj::mv(sent));
                })
                .catch_([work](kj::Exception&& exception) {
                  logWarning("the status of Work {} could not be said on its issue: {}", work, describe(exception));
                  return false;
                })
                .then([this, work](bool said) {
                  wanted[work].busy = false;
                  // What could not be said is said with the next change.
                  if (said) write(work);
                }));
}

void Status::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::hub
