#include "rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/redact.h"
#include "base/text.h"
#include "proto/convert.h"

namespace oc::control {

namespace {

// A list is one message: what is in it must fit in what a client reads of one (64 MiB), with room for its frame.
constexpr size_t mostRows = 10'000;
constexpr size_t mostBytes = 32u << 20;
// What a row takes besides its texts.
constexpr size_t rowOverhead = 512;

void fill(capnp::List<capnp::Text>::Builder to, const std::vector<std::string>& from) {
  for (size_t i = 0; i < from.size(); ++i) to.set(i, toText(withoutSecrets(from[i])));
}

void fill(capnp::List<proto::Denial>::Builder to, const std::vector<state::Denial>& from) {
  for (size_t i = 0; i < from.size(); ++i) {
    to[i].setKind(toText(from[i].kind));
    to[i].setWhat(toText(withoutSecrets(from[i].what)));
    to[i].setWhy(toText(withoutSecrets(from[i].why)));
  }
}

void fill(proto::NetworkTotals::Builder to, const state::NetworkTotals& from) {
  to.setAllowed(from.allowed);
  to.setDenied(from.denied);
  to.setBytesUp(from.bytesUp);
  to.setBytesDown(from.bytesDown);
}

size_t sizeOf(const std::vector<state::Denial>& denials) {
  size_t size = 0;
  for (auto& denial : denials) size += denial.kind.size() + denial.what.size() + denial.why.size() + 48;
  return size;
}

size_t sizeOf(const std::vector<std::string>& texts) {
  size_t size = 0;
  for (auto& text : texts) size += text.size() + 16;
  return size;
}

size_t sizeOf(const state::WorkRow& work) {
  return rowOverhead + work.title.size() + work.checkout.size() * 2 + work.branch.size() + sizeOf(work.warnings);
}

size_t sizeOf(const state::RunRow& run, const state::WorkRow& work) {
  return sizeOf(work) + run.message.size() + run.fix.size() + sizeOf(run.notes) + sizeOf(run.denied);
}

size_t rowsFor(uint32_t limit) { return limit == 0 ? mostRows : std::min<size_t>(limit, mostRows); }

template <typename Row>
OrRefusal<Row> chooseByPrefix(const std::vector<Row>& rows, const std::string& prefix, Refusal unknown) {
  std::vector<const Row*> found;
  for (auto& row : rows) {
    if (row.id.starts_with(prefix)) found.push_back(&row);
  }
  if (found.empty()) return unknown;
  if (found.size() == 1) return *found.front();
  std::string names;
  for (size_t i = 0; i < found.size() && i < 5; ++i) names += (i == 0 ? "" : ", ") + found[i]->id;
  if (found.size() > 5) names += ", …";
  return Refusal{"id_ambiguous", fmt::format("{} could be any of {}: {}", prefix, found.size(), names),
                 "write more of the id"};
}

template <typename Row>
OrRefusal<Row> findByPrefix(const std::vector<Row>& rows, const std::string& prefix, std::string_view kind,
                            Refusal unknown) {
  if (!prefix.starts_with(kind)) return unknown;
  // It begins every id, so it is never meant as one of them, not even of the only one.
  if (prefix == kind) {
    return Refusal{"id_ambiguous", fmt::format("every id begins with {}", kind), "write more of the id"};
  }
  return chooseByPrefix(rows, prefix, std::move(unknown));
}

}  // namespace

OrRefusal<state::RunRow> findRun(state::Store& store, const std::string& id) {
  if (auto exact = store.run(id)) return *std::move(exact);
  Refusal unknown{"run_unknown", fmt::format("there is no run {}", shortened(printable(id), 64)),
                  "open-conduit runs list"};
  if (store.work(id)) {
    unknown.what += " (it is Work)";
    unknown.fix = fmt::format("open-conduit runs list --work {}", id);
  }
  return findByPrefix(store.recentRuns(mostRows), id, "r-", unknown);
}

OrRefusal<state::WorkRow> findWork(state::Store& store, const std::string& id) {
  if (auto exact = store.work(id)) return *std::move(exact);
  Refusal unknown{"work_unknown", fmt::format("there is no Work {}", shortened(printable(id), 64)),
                  "open-conduit work list"};
  if (auto run = store.run(id)) {
    unknown.what += fmt::format(" (it is a run, of Work {})", run->work);
    unknown.fix = fmt::format("open-conduit work get {}", run->work);
  }
  return findByPrefix(store.allWork(), id, "w-", unknown);
}

void fillRun(proto::Run::Builder to, const state::RunRow& run, const state::WorkRow& work) {
  to.setId(toText(run.id));
  to.setWork(toText(run.work));
  to.setScope(toText(work.scope));
  to.setBinding(toText(work.binding));
  to.setState(toText(state::toWord(run.state)));
  if (run.outcome != state::Outcome::None) to.setOutcome(toText(state::toWord(run.outcome)));
  to.setReason(toText(run.reason));
  to.setMessage(toText(withoutSecrets(run.message)));
  to.setFix(toText(withoutSecrets(run.fix)));
  to.setExitCode(run.exitCode);
  to.setCreatedAt(run.createdAt);
  to.setStartedAt(run.startedAt);
  to.setEndedAt(run.endedAt);
  to.setAttempt(run.attempt);
  to.setPolicyKind(toText(run.policyKind));
  to.setPolicySha256(toText(run.planSha256));
  to.setBranch(toText(work.branch));
  to.setSavedAs(toText(run.savedAs));
  to.setCommits(run.commits);
  to.setTitle(toText(withoutSecrets(work.title)));
  to.setCheckout(toText(work.checkout));
  fill(to.initNotes(run.notes.size()), run.notes);
  to.setSession(toText(run.session));
  fill(to.initDenied(run.denied.size()), run.denied);
  fill(to.initUsage(), run.usage);
  fill(to.initNetwork(), run.network);
}

void fill(proto::RunEvent::Usage::Builder to, const state::Usage& from) {
  to.setInputTokens(from.inputTokens);
  to.setOutputTokens(from.outputTokens);
  to.setCacheReadTokens(from.cacheReadTokens);
  to.setCacheWriteTokens(from.cacheWriteTokens);
  to.setCostMicroUsd(from.costMicroUsd);
  to.setTurns(from.turns);
}

void add(state::Usage& sum, const state::Usage& one) {
  sum.inputTokens += one.inputTokens;
  sum.outputTokens += one.outputTokens;
  sum.cacheReadTokens += one.cacheReadTokens;
  sum.cacheWriteTokens += one.cacheWriteTokens;
  sum.costMicroUsd += one.costMicroUsd;
  sum.turns += one.turns;
}

void fillWork(proto::Work::Builder to, const state::WorkRow& work, const std::vector<std::string>& runs,
              const Places& places) {
  to.setId(toText(work.id));
  to.setScope(toText(work.scope));
  to.setBinding(toText(work.binding));
  to.setTitle(toText(withoutSecrets(work.title)));
  to.setState(toText(state::toWord(work.state)));
  to.setCreatedAt(work.createdAt);
  to.setEndedAt(work.endedAt);
  to.setBranch(toText(work.branch));
  if (work.workspaceMade) to.setWorkspace(toText(places.workspace(work.id)));
  to.setCheckout(toText(work.checkout));
  fill(to.initRuns(runs.size()), runs);
  fill(to.initWarnings(work.warnings.size()), work.warnings);
  to.setSession(toText(work.session));
}

void fillNotes(proto::Work::Builder to, state::Store& store, const std::string& work) {
  auto notes = store.notes(work, 100);
  auto list = to.initNotes(notes.size());
  for (size_t i = 0; i < notes.size(); ++i) {
    list[i].setRun(toText(notes[i].run));
    list[i].setAt(notes[i].at);
    list[i].setText(toText(notes[i].text));
  }
}

void fillRuns(proto::Control::ListRunsResults::Builder results, state::Store& store, const std::string& work,
              uint32_t limit) {
  auto runs = work.empty() ? store.recentRuns(rowsFor(limit)) : store.runsOf(work);
  if (!work.empty()) std::reverse(runs.begin(), runs.end());
  size_t all = work.empty() ? store.countRuns() : runs.size();

  std::map<std::string, state::WorkRow> works;
  size_t count = 0, bytes = 0;
  for (; count < runs.size() && count < rowsFor(limit); ++count) {
    auto& id = runs[count].work;
    if (!works.contains(id)) works.emplace(id, store.work(id).value_or(state::WorkRow{}));
    bytes += sizeOf(runs[count], works.at(id));
    if (bytes > mostBytes) break;
  }
  auto list = results.initRuns(count);
  for (size_t i = 0; i < count; ++i) fillRun(list[i], runs[i], works.at(runs[i].work));
  results.setOlder(all - count);
}

void fillAllWork(proto::Control::ListWorkResults::Builder results, state::Store& store, const Places& places,
                 uint32_t limit) {
  auto works = store.recentWork(rowsFor(limit));
  std::vector<std::vector<std::string>> runs;
  size_t count = 0, bytes = 0;
  for (; count < works.size(); ++count) {
    runs.emplace_back();
    for (auto& run : store.runsOf(works[count].id)) runs.back().push_back(run.id);
    bytes += sizeOf(works[count]) + sizeOf(runs.back());
    if (bytes > mostBytes) break;
  }
  auto list = results.initWork(count);
  for (size_t i = 0; i < count; ++i) fillWork(list[i], works[i], runs[i], places);
  results.setOlder(store.countWork() - count);
}

}  // namespace oc::control
