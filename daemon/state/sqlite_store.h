// The Store over an open database of the current version.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "daemon/state/files.h"
#include "daemon/state/github_store.h"
#include "daemon/state/store.h"

namespace oc::state {

// How long a write waits for somebody who has the database locked: a person with an sqlite3 shell, or a
// backup. The daemon stands still meanwhile; then the write fails.
constexpr int BUSY_TIMEOUT_MS = 5000;

class SqliteStore final : public Store {
 public:
  // `database` is configured and migrated. Throws SQLite::Exception when it has not the tables that we know.
  SqliteStore(const std::string& path, StateLock lock, std::unique_ptr<SQLite::Database> database);
  ~SqliteStore() noexcept override {}

  void addWork(const WorkRow& work) override;
  void updateWork(const WorkRow& work) override;
  std::optional<WorkRow> work(const std::string& id) override;
  std::vector<WorkRow> allWork() override;
  std::vector<WorkRow> recentWork(size_t limit) override;
  size_t countWork() override;

  void addRun(const RunRow& run) override;
  void updateRun(const RunRow& run) override;
  std::optional<RunRow> run(const std::string& id) override;
  std::vector<RunRow> runsOf(const std::string& work) override;
  std::vector<RunRow> recentRuns(size_t limit) override;
  std::vector<RunRow> unendedRuns() override;
  size_t countRuns() override;

  void addWorkWithRun(const WorkRow& work, const RunRow& run) override;

  void addNote(const std::string& work, const WorkNote& note) override;
  std::vector<WorkNote> notes(const std::string& work, size_t latest) override;

  void pinPlan(const std::string& run, const std::string& json, const std::string& sha256) override;
  void dropPlan(const std::string& run) override;
  std::optional<std::string> plan(const std::string& run) override;

  void setRunKey(const std::string& run, const SecretBytes& key) override;
  std::optional<SecretBytes> runKey(const std::string& run) override;
  void dropRunKey(const std::string& run) override;

  std::string integrity() override;
  GitHubStore& gitHub() override { return gitHubStore; }

 private:
  // Runs `access` and turns what SQLite throws into an exception that says what was being done, and with
  // which file.
  template <typename Access>
  auto doing(const char* what, Access&& access);
  void emptyLog();

  // In this order: the lock is let go of last.
  std::string path;
  StateLock lock;
  std::unique_ptr<SQLite::Database> database;

  SQLite::Statement insertWork, changeWork, selectWork, selectRecentWork, countAllWork;
  SQLite::Statement insertRun, changeRun, selectRun, selectRunsOf, selectRecent, selectUnended, countAllRuns;
  SQLite::Statement insertNote, selectNotes;
  SQLite::Statement insertPlan, deletePlan, selectPlan;
  SQLite::Statement putKey, selectKey, deleteKey;
  GitHubStore gitHubStore;
};

}  // namespace oc::state
