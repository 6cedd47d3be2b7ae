// The daemon's state in memory: what a test of its users needs of state::Store, without a disk.
#pragma once

#include <kj/debug.h>

#include <algorithm>
#include <map>

#include "daemon/state/store.h"

namespace oc::fakes {

class MemoryStore final : public state::Store {
  static auto named(const std::string& id) {
    return [&id](const auto& row) { return row.id == id; };
  }

 public:
  void addWork(const state::WorkRow& work) override { works.push_back(work); }
  void updateWork(const state::WorkRow& work) override {
    *std::find_if(works.begin(), works.end(), named(work.id)) = work;
  }
  std::optional<state::WorkRow> work(const std::string& id) override { return find(works, id); }
  std::vector<state::WorkRow> allWork() override { return {works.rbegin(), works.rend()}; }
  std::vector<state::WorkRow> recentWork(size_t limit) override {
    return {works.rbegin(), works.rbegin() + std::min(limit, works.size())};
  }
  size_t countWork() override { return works.size(); }

  void addRun(const state::RunRow& run) override { runs.push_back(run); }
  void updateRun(const state::RunRow& run) override { *std::find_if(runs.begin(), runs.end(), named(run.id)) = run; }
  std::optional<state::RunRow> run(const std::string& id) override {
    if (failing) KJ_FAIL_REQUIRE("the disk\x1b[31m is full");
    return find(runs, id);
  }
  std::vector<state::RunRow> runsOf(const std::string& work) override {
    return filtered([&work](const state::RunRow& run) { return run.work == work; });
  }
  std::vector<state::RunRow> recentRuns(size_t limit) override {
    return {runs.rbegin(), runs.rbegin() + std::min(limit, runs.size())};
  }
  size_t countRuns() override { return runs.size(); }
  std::vector<state::RunRow> unendedRuns() override {
    return filtered([](const state::RunRow& run) { return run.state != state::RunState::Ended; });
  }
  void addWorkWithRun(const state::WorkRow& work, const state::RunRow& run) override {
    addWork(work);
    addRun(run);
  }

  void addNote(const std::string& work, const state::WorkNote& note) override { workNotes[work].push_back(note); }
  std::vector<state::WorkNote> notes(const std::string& work, size_t latest) override {
    auto& all = workNotes[work];
    return {all.end() - std::min(latest, all.size()), all.end()};
  }

  void pinPlan(const std::string& run, const std::string& json, const std::string& sha256) override {
    KJ_REQUIRE(sha256 == sha256Hex(json) && plans.emplace(run, json).second, "pinned already, or a wrong hash");
  }
  void dropPlan(const std::string& run) override { plans.erase(run); }
  std::optional<std::string> plan(const std::string& run) override {
    auto found = plans.find(run);
    return found == plans.end() ? std::nullopt : std::optional(found->second);
  }

  void setRunKey(const std::string& run, const SecretBytes& key) override { keys[run] = key.clone(); }
  std::optional<SecretBytes> runKey(const std::string& run) override {
    auto found = keys.find(run);
    if (found == keys.end()) return std::nullopt;
    return found->second.clone();
  }
  void dropRunKey(const std::string& run) override { keys.erase(run); }

  std::string integrity() override { return "ok"; }

  // Lets every question about a run fail, with an escape sequence in the words.
  bool failing = false;

 private:
  template <typename Row>
  static std::optional<Row> find(const std::vector<Row>& rows, const std::string& id) {
    auto found = std::find_if(rows.begin(), rows.end(), named(id));
    return found == rows.end() ? std::nullopt : std::optional(*found);
  }
  template <typename Condition>
  std::vector<state::RunRow> filtered(Condition condition) {
    std::vector<state::RunRow> result;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(result), condition);
    return result;
  }

  std::vector<state::WorkRow> works;
  std::vector<state::RunRow> runs;
  std::map<std::string, std::vector<state::WorkNote>> workNotes;
  std::map<std::string, std::string> plans;
  std::map<std::string, SecretBytes> keys;
};

}  // namespace oc::fakes
