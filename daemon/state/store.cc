#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Transaction.h>
#include <kj/debug.h>

#include <algorithm>

#include "daemon/state/rows.h"
#include "daemon/state/sqlite_store.h"

namespace oc::state {

namespace {

// A prepared statement in use. One that is left in the middle of its rows would keep what it reads from being
// checkpointed, so it is always brought back to its beginning, and what was bound is let go.
class Use {
 public:
  explicit Use(SQLite::Statement& statement) : statement(statement) {}
  ~Use() {
    statement.tryReset();
    statement.clearBindings();
  }
  KJ_DISALLOW_COPY(Use);

  Use& with(int index, const std::string& text) {
    statement.bind(index, text);
    return *this;
  }
  Use& with(int index, int64_t number) {
    statement.bind(index, number);
    return *this;
  }
  template <typename Row>
  Use& withRow(const Row& row) {
    bindRow(statement, row);
    return *this;
  }

  bool step() { return statement.executeStep(); }
  int write() { return statement.exec(); }
  SQLite::Column column(int index) { return statement.getColumn(index); }

  // Of a question that always has one row with one number.
  size_t number() {
    step();
    return static_cast<size_t>(column(0).getInt64());
  }

  template <typename Row>
  std::optional<Row> row() {
    if (!step()) return std::nullopt;
    return readRow<Row>(statement);
  }
  template <typename Row>
  std::vector<Row> rows() {
    std::vector<Row> all;
    while (step()) all.push_back(readRow<Row>(statement));
    return all;
  }

 private:
  SQLite::Statement& statement;
};

constexpr size_t KEY_BYTES = 32;

// SQLite takes a negative limit for none.
int64_t boundOf(size_t limit) {
  return static_cast<int64_t>(std::min<size_t>(limit, std::numeric_limits<int64_t>::max()));
}

}  // namespace

SqliteStore::SqliteStore(const std::string& path, StateLock lock, std::unique_ptr<SQLite::Database> database)
    : path(path),
      lock(kj::mv(lock)),
      database(std::move(database)),
      insertWork(*this->database, insertInto<WorkRow>("work")),
      changeWork(*this->database, updateOf<WorkRow>("work")),
      selectWork(*this->database, selectFrom<WorkRow>("work") + " WHERE id = ?1"),
      selectRecentWork(*this->database, selectFrom<WorkRow>("work") + " ORDER BY seq DESC LIMIT ?1"),
      countAllWork(*this->database, "SELECT count(*) FROM work"),
      insertRun(*this->database, insertInto<RunRow>("runs")),
      changeRun(*this->database, updateOf<RunRow>("runs")),
      selectRun(*this->database, selectFrom<RunRow>("runs") + " WHERE id = ?1"),
      selectRunsOf(*this->database, selectFrom<RunRow>("runs") + " WHERE work = ?1 ORDER BY seq"),
      selectRecent(*this->database, selectFrom<RunRow>("runs") + " ORDER BY seq DESC LIMIT ?1"),
      selectUnended(*this->database, selectFrom<RunRow>("runs") + " WHERE state <> 'ended' ORDER BY seq"),
      countAllRuns(*this->database, "SELECT count(*) FROM runs"),
      insertNote(*this->database, "INSERT INTO work_notes (work, run, at, text) VALUES (?1, ?2, ?3, ?4)"),
      selectNotes(*this->database, "SELECT run, at, text FROM work_notes WHERE work = ?1 ORDER BY seq DESC LIMIT ?2"),
      insertPlan(*this->database, "INSERT INTO plans (run, json, sha256) VALUES (?1, ?2, ?3)"),
      deletePlan(*this->database, "DELETE FROM plans WHERE run = ?1"),
      selectPlan(*this->database, "SELECT json, sha256 FROM plans WHERE run = ?1"),
      putKey(*this->database,
             "INSERT INTO run_keys (run, key) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET key = "
             "excluded.key"),
      selectKey(*this->database, "SELECT key FROM run_keys WHERE run = ?1"),
      deleteKey(*this->database, "DELETE FROM run_keys WHERE run = ?1"),
      gitHubStore(*this->database, path) {}

GitHubStore& Store::gitHub() { KJ_FAIL_REQUIRE("this store keeps nothing of GitHub's"); }

template <typename Access>
auto SqliteStore::doing(const char* what, Access&& access) {
  try {
    return access();
  } catch (const SQLite::Exception& e) {
    kj::throwFatalException(KJ_EXCEPTION(FAILED, "the state database failed", what, path, e.what()));
  }
}

// ---- Work

void SqliteStore::addWork(const WorkRow& work) {
  doing("adding Work", [&]() { Use(insertWork).withRow(work).write(); });
}

void SqliteStore::updateWork(const WorkRow& work) {
  int changed = doing("updating Work", [&]() { return Use(changeWork).withRow(work).write(); });
  KJ_REQUIRE(changed == 1, "there is no such Work in the state database", work.id);
}

std::optional<WorkRow> SqliteStore::work(const std::string& id) {
  return doing("reading Work", [&]() { return Use(selectWork).with(1, id).row<WorkRow>(); });
}

std::vector<WorkRow> SqliteStore::allWork() { return recentWork(std::numeric_limits<size_t>::max()); }

std::vector<WorkRow> SqliteStore::recentWork(size_t limit) {
  return doing("listing Work", [&]() { return Use(selectRecentWork).with(1, boundOf(limit)).rows<WorkRow>(); });
}

size_t SqliteStore::countWork() {
  return doing("counting Work", [&]() { return Use(countAllWork).number(); });
}

// ---- runs

void SqliteStore::addRun(const RunRow& run) {
  doing("adding a run", [&]() { Use(insertRun).withRow(run).write(); });
}

void SqliteStore::updateRun(const RunRow& run) {
  int changed = doing("updating a run", [&]() { return Use(changeRun).withRow(run).write(); });
  KJ_REQUIRE(changed == 1, "there is no such run in the state database", run.id);
}

std::optional<RunRow> SqliteStore::run(const std::string& id) {
  return doing("reading a run", [&]() { return Use(selectRun).with(1, id).row<RunRow>(); });
}

std::vector<RunRow> SqliteStore::runsOf(const std::string& work) {
  return doing("listing a Work's runs", [&]() { return Use(selectRunsOf).with(1, work).rows<RunRow>(); });
}

std::vector<RunRow> SqliteStore::recentRuns(size_t limit) {
  return doing("listing runs", [&]() { return Use(selectRecent).with(1, boundOf(limit)).rows<RunRow>(); });
}

size_t SqliteStore::countRuns() {
  return doing("counting runs", [&]() { return Use(countAllRuns).number(); });
}

std::vector<RunRow> SqliteStore::unendedRuns() {
  return doing("listing live runs", [&]() { return Use(selectUnended).rows<RunRow>(); });
}

void SqliteStore::addWorkWithRun(const WorkRow& work, const RunRow& run) {
  KJ_REQUIRE(run.work == work.id, "the run is of other Work", run.work, work.id);
  doing("adding Work and its first run", [&]() {
    SQLite::Transaction transaction(*database);
    Use(insertWork).withRow(work).write();
    Use(insertRun).withRow(run).write();
    transaction.commit();
  });
}

// ---- notes

void SqliteStore::addNote(const std::string& work, const WorkNote& note) {
  doing("adding a note",
        [&]() { Use(insertNote).with(1, work).with(2, note.run).with(3, note.at).with(4, note.text).write(); });
}

std::vector<WorkNote> SqliteStore::notes(const std::string& work, size_t latest) {
  auto found = doing("reading a Work's notes", [&]() {
    Use use(selectNotes);
    use.with(1, work).with(2, static_cast<int64_t>(std::min<size_t>(latest, 10'000)));
    std::vector<WorkNote> all;
    while (use.step()) all.push_back({use.column(0).getString(), use.column(1).getInt64(), use.column(2).getString()});
    return all;
  });
  std::reverse(found.begin(), found.end());
  return found;
}

// ---- plans

void SqliteStore::pinPlan(const std::string& run, const std::string& json, const std::string& sha256) {
  KJ_REQUIRE(sha256Hex(json) == sha256, "the plan does not have the hash that was given with it", run);
  doing("pinning a plan", [&]() { Use(insertPlan).with(1, run).with(2, json).with(3, sha256).write(); });
}

void SqliteStore::dropPlan(const std::string& run) {
  doing("dropping a plan", [&]() { Use(deletePlan).with(1, run).write(); });
}

std::optional<std::string> SqliteStore::plan(const std::string& run) {
  struct Stored {
    std::string json, sha256;
  };
  auto stored = doing("reading a plan", [&]() -> std::optional<Stored> {
    Use use(selectPlan);
    if (!use.with(1, run).step()) return std::nullopt;
    return Stored{use.column(0).getString(), use.column(1).getString()};
  });
  if (!stored) return std::nullopt;
  KJ_REQUIRE(sha256Hex(stored->json) == stored->sha256,
             "the plan in the state database is not the one that was pinned for the run", run, path);
  return std::move(stored->json);
}

// ---- keys

void SqliteStore::setRunKey(const std::string& run, const SecretBytes& key) {
  KJ_REQUIRE(key.size() == KEY_BYTES, "a run's key has 32 bytes", key.size());
  doing("storing a run's key", [&]() {
    Use use(putKey);
    // Not copied: SQLite would free its copy without wiping it. The key outlives the statement's use.
    putKey.bindNoCopy(2, key.view().data(), static_cast<int>(key.size()));
    use.with(1, run).write();
  });
}

std::optional<SecretBytes> SqliteStore::runKey(const std::string& run) {
  return doing("reading a run's key", [&]() -> std::optional<SecretBytes> {
    Use use(selectKey);
    if (!use.with(1, run).step()) return std::nullopt;
    auto column = use.column(0);
    auto blob = static_cast<const char*>(column.getBlob());
    size_t size = column.getBytes();
    KJ_REQUIRE(size == KEY_BYTES, "the state database holds a key of a length that it cannot have been given", run);
    return SecretBytes(std::string_view(blob, size));
  });
}

void SqliteStore::dropRunKey(const std::string& run) {
  int deleted = doing("deleting a run's key", [&]() { return Use(deleteKey).with(1, run).write(); });
  if (deleted > 0) emptyLog();
}

// secure_delete overwrites the key in its page, but the write-ahead log still has the page as it was. When a
// reader (a person with sqlite3) is in the way, this does nothing, and a later one does it.
void SqliteStore::emptyLog() {
  database->setBusyTimeout(0);
  database->tryExec("PRAGMA wal_checkpoint(TRUNCATE)");
  database->setBusyTimeout(BUSY_TIMEOUT_MS);
}

std::string SqliteStore::integrity() {
  return doing("checking the database", [&]() {
    std::string findings;
    SQLite::Statement check(*database, "PRAGMA integrity_check");
    while (check.executeStep()) findings += (findings.empty() ? "" : "\n") + check.getColumn(0).getString();
    return findings;
  });
}

}  // namespace oc::state
