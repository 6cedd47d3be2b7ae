#include "github_store.h"

#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <kj/debug.h>
#include <time.h>

#include "rows.h"

namespace oc::state {

namespace {

const char* kindOf(bool comment) { return comment ? "comment" : "issue"; }

int64_t nowMs() {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

int64_t signedOf(uint64_t id) {
  KJ_REQUIRE(std::in_range<int64_t>(id), "an id of GitHub's is too large for the state database", id);
  return static_cast<int64_t>(id);
}

}  // namespace

template <typename Access>
auto GitHubStore::doing(const char* what, Access&& access) {
  try {
    return access();
  } catch (const SQLite::Exception& e) {
    kj::throwFatalException(KJ_EXCEPTION(FAILED, "the state database failed", what, path, e.what()));
  }
}

bool GitHubStore::seen(const GitHubEventKey& key) {
  return doing("looking for an event", [&]() {
    SQLite::Statement found(
        database,
        "SELECT 1 FROM github_events WHERE repo = ?1 AND kind = ?2 AND id = ?3 AND updated_at = ?4 AND body_hash = ?5");
    found.bind(1, key.repo);
    found.bind(2, kindOf(key.comment));
    found.bind(3, signedOf(key.id));
    found.bind(4, key.updatedAt);
    found.bind(5, key.bodyHash);
    return found.executeStep();
  });
}

bool GitHubStore::seenBefore(const std::string& repo, bool comment, uint64_t id) {
  return doing("looking for an event", [&]() {
    SQLite::Statement found(database, "SELECT 1 FROM github_events WHERE repo = ?1 AND kind = ?2 AND id = ?3 LIMIT 1");
    found.bind(1, repo);
    found.bind(2, kindOf(comment));
    found.bind(3, signedOf(id));
    return found.executeStep();
  });
}

// False when it is there already.
bool GitHubStore::insertEvent(const GitHubEventKey& key) {
  SQLite::Statement insert(
      database,
      "INSERT INTO github_events (repo, kind, id, updated_at, body_hash, seen_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
      "ON CONFLICT DO NOTHING");
  insert.bind(1, key.repo);
  insert.bind(2, kindOf(key.comment));
  insert.bind(3, signedOf(key.id));
  insert.bind(4, key.updatedAt);
  insert.bind(5, key.bodyHash);
  insert.bind(6, nowMs());
  return insert.exec() == 1;
}

bool GitHubStore::noteEvent(const GitHubEventKey& key) {
  return doing("noting an event", [&]() { return insertEvent(key); });
}

bool GitHubStore::addWork(const GitHubEventKey& key, const WorkRow& work, const RunRow& run, const GitHubWork& origin) {
  KJ_REQUIRE(run.work == work.id && origin.work == work.id, "the run or the event is of other Work", work.id);
  return doing("adding Work from an event", [&]() {
    SQLite::Transaction transaction(database);
    if (!insertEvent(key)) return false;
    SQLite::Statement addWork(database, insertInto<WorkRow>("work"));
    bindRow(addWork, work);
    addWork.exec();
    SQLite::Statement addRun(database, insertInto<RunRow>("runs"));
    bindRow(addRun, run);
    addRun.exec();
    SQLite::Statement link(
        database,
        "INSERT INTO github_work (work, connection, repo, issue, route, trigger, triggered_at, closed, status_comment, "
        "status_text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, '')");
    link.bind(1, origin.work);
    link.bind(2, origin.connection);
    link.bind(3, origin.repo);
    link.bind(4, signedOf(origin.issue));
    link.bind(5, origin.route);
    link.bind(6, origin.trigger);
    link.bind(7, origin.triggeredAt);
    link.exec();
    transaction.commit();
    return true;
  });
}

bool GitHubStore::addTurn(const GitHubEventKey& key, const GitHubTurn& turn) {
  return doing("adding a turn from an event", [&]() {
    SQLite::Transaction transaction(database);
    if (!insertEvent(key)) return false;
    SQLite::Statement add(database,
                          "INSERT INTO github_turns (work, key, text, policy, delivered) VALUES (?1, ?2, ?3, ?4, 0)");
    add.bind(1, turn.work);
    add.bind(2, turn.key);
    add.bind(3, turn.text);
    add.bind(4, turn.policy);
    add.exec();
    transaction.commit();
    return true;
  });
}

bool GitHubStore::noteClosed(const GitHubEventKey& key, const std::string& work) {
  return doing("noting that an issue was closed", [&]() {
    SQLite::Transaction transaction(database);
    if (!insertEvent(key)) return false;
    SQLite::Statement close(database, "UPDATE github_work SET closed = 1 WHERE work = ?1");
    close.bind(1, work);
    close.exec();
    transaction.commit();
    return true;
  });
}

std::vector<GitHubTurn> GitHubStore::waitingTurns() {
  return doing("reading turns", [&]() {
    SQLite::Statement rows(database,
                           "SELECT seq, work, key, text, policy FROM github_turns WHERE delivered = 0 ORDER BY seq");
    std::vector<GitHubTurn> turns;
    while (rows.executeStep()) {
      turns.push_back({rows.getColumn(0).getInt64(), rows.getColumn(1).getString(), rows.getColumn(2).getString(),
                       rows.getColumn(3).getString(), rows.getColumn(4).getString()});
    }
    return turns;
  });
}

void GitHubStore::turnDelivered(int64_t seq) {
  doing("noting a turn", [&]() {
    SQLite::Statement change(database, "UPDATE github_turns SET delivered = 1 WHERE seq = ?1");
    change.bind(1, seq);
    change.exec();
  });
}

std::optional<GitHubWork> GitHubStore::readWork(const std::string& where, const std::string& first, int64_t second) {
  return doing("reading where Work came from", [&]() -> std::optional<GitHubWork> {
    SQLite::Statement row(
        database,
        "SELECT work, connection, repo, issue, route, trigger, triggered_at, closed, status_comment, status_text FROM "
        "github_work WHERE " +
            where + " ORDER BY rowid DESC LIMIT 1");
    row.bind(1, first);
    if (row.getBindParameterCount() > 1) row.bind(2, second);
    if (!row.executeStep()) return std::nullopt;
    GitHubWork work;
    work.work = row.getColumn(0).getString();
    work.connection = row.getColumn(1).getString();
    work.repo = row.getColumn(2).getString();
    work.issue = static_cast<uint64_t>(row.getColumn(3).getInt64());
    work.route = row.getColumn(4).getString();
    work.trigger = row.getColumn(5).getString();
    work.triggeredAt = row.getColumn(6).getInt64();
    work.closed = row.getColumn(7).getInt() != 0;
    work.statusComment = static_cast<uint64_t>(row.getColumn(8).getInt64());
    work.statusText = row.getColumn(9).getString();
    return work;
  });
}

std::optional<GitHubWork> GitHubStore::origin(const std::string& work) { return readWork("work = ?1", work, 0); }

std::optional<GitHubWork> GitHubStore::latestOf(const std::string& repo, uint64_t issue) {
  return readWork("repo = ?1 AND issue = ?2", repo, signedOf(issue));
}

void GitHubStore::setStatus(const std::string& work, uint64_t comment, const std::string& text) {
  doing("noting a status", [&]() {
    SQLite::Statement change(database, "UPDATE github_work SET status_comment = ?2, status_text = ?3 WHERE work = ?1");
    change.bind(1, work);
    change.bind(2, signedOf(comment));
    change.bind(3, text);
    change.exec();
  });
}

std::optional<GitHubCursor> GitHubStore::cursor(const std::string& repo, bool comments) {
  return doing("reading how far a repository was read", [&]() -> std::optional<GitHubCursor> {
    SQLite::Statement row(database, "SELECT since, etag FROM github_cursors WHERE repo = ?1 AND kind = ?2");
    row.bind(1, repo);
    row.bind(2, kindOf(comments));
    if (!row.executeStep()) return std::nullopt;
    return GitHubCursor{row.getColumn(0).getInt64(), row.getColumn(1).getString()};
  });
}

void GitHubStore::setCursor(const std::string& repo, bool comments, const GitHubCursor& cursor) {
  doing("noting how far a repository was read", [&]() {
    SQLite::Statement put(
        database,
        "INSERT INTO github_cursors (repo, kind, since, etag) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (repo, kind) DO UPDATE "
        "SET since = excluded.since, etag = excluded.etag");
    put.bind(1, repo);
    put.bind(2, kindOf(comments));
    put.bind(3, cursor.since);
    put.bind(4, cursor.etag);
    put.exec();
  });
}

}  // namespace oc::state
