#include "schema.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Transaction.h>
#include <kj/debug.h>

#include <string>

#include "base/log.h"

namespace oc::state {

namespace {

// `seq` is the order of arrival, which clocks that are set back do not change; nothing is ever deleted from
// these two tables, so it only grows. STRICT and CHECK let integrity_check find values that no version of ours
// has written.
constexpr Migration STEPS[] = {
    {"work, runs, plans, keys and the journal", R"(
PRAGMA application_id = 0x4f437374;

CREATE TABLE work (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  scope TEXT NOT NULL,
  binding TEXT NOT NULL,
  title TEXT NOT NULL,
  body_file TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'finishing', 'cancelling', 'finished', 'cancelled')),
  created_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  checkout TEXT NOT NULL,
  workspace_mode TEXT NOT NULL,
  branch TEXT NOT NULL,
  base TEXT NOT NULL,
  saved_tip TEXT NOT NULL,
  saved_as TEXT NOT NULL,
  workspace_made INTEGER NOT NULL CHECK (workspace_made IN (0, 1)),
  warnings TEXT NOT NULL
) STRICT;

CREATE TABLE runs (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  work TEXT NOT NULL REFERENCES work (id),
  state TEXT NOT NULL CHECK (state IN ('queued', 'preparing', 'running', 'saving', 'cleaning', 'ended')),
  outcome TEXT NOT NULL
    CHECK (outcome IN ('none', 'succeeded', 'failed', 'refused', 'stopped', 'interrupted')),
  reason TEXT NOT NULL,
  message TEXT NOT NULL,
  fix TEXT NOT NULL,
  exit_code INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  policy_kind TEXT NOT NULL,
  plan_sha256 TEXT NOT NULL,
  commits INTEGER NOT NULL,
  saved_as TEXT NOT NULL,
  notes TEXT NOT NULL,
  shim_pid INTEGER NOT NULL,
  sandbox_pid INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  stop_asked INTEGER NOT NULL CHECK (stop_asked IN (0, 1))
) STRICT;
-- An index ends in the row's number: both give their rows in order of arrival.
CREATE INDEX runs_of_work ON runs (work);
CREATE INDEX runs_unended ON runs (seq) WHERE state <> 'ended';

CREATE TABLE plans (
  run TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
  json TEXT NOT NULL,
  sha256 TEXT NOT NULL
) STRICT;

CREATE TABLE run_keys (
  run TEXT NOT NULL PRIMARY KEY REFERENCES runs (id),
  key BLOB NOT NULL CHECK (length(key) = 32)
) STRICT;
)"},
    {"sessions, usage, network, denials and notes", R"(
ALTER TABLE work ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE work ADD COLUMN finish_asked INTEGER NOT NULL DEFAULT 0 CHECK (finish_asked IN (0, 1));
ALTER TABLE runs ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN usage TEXT NOT NULL DEFAULT
  '{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_micro_usd":0,"turns":0}';
ALTER TABLE runs ADD COLUMN network TEXT NOT NULL DEFAULT '{"allowed":0,"denied":0,"bytes_up":0,"bytes_down":0}';
ALTER TABLE runs ADD COLUMN denied TEXT NOT NULL DEFAULT '[]';

CREATE TABLE work_notes (
  seq INTEGER PRIMARY KEY,
  work TEXT NOT NULL REFERENCES work (id),
  run TEXT NOT NULL,
  at INTEGER NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX notes_of_work ON work_notes (work);
)"},
    // What GitHub told, once for all: an event is one by its id, the time of its change and what it said.
    {"GitHub's events, the Work and the turns that they made, and how far a repository was read", R"(
CREATE TABLE github_events (
  repo TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('issue', 'comment')),
  id INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  body_hash TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (repo, kind, id, updated_at, body_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE github_work (
  work TEXT NOT NULL PRIMARY KEY REFERENCES work (id),
  connection TEXT NOT NULL,
  repo TEXT NOT NULL,
  issue INTEGER NOT NULL,
  route TEXT NOT NULL,
  trigger TEXT NOT NULL,
  triggered_at INTEGER NOT NULL,
  closed INTEGER NOT NULL CHECK (closed IN (0, 1)),
  status_comment INTEGER NOT NULL,
  status_text TEXT NOT NULL
) STRICT;
CREATE INDEX github_work_of_issue ON github_work (repo, issue);

CREATE TABLE github_turns (
  seq INTEGER PRIMARY KEY,
  work TEXT NOT NULL REFERENCES work (id),
  key TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  policy TEXT NOT NULL CHECK (policy IN ('inject', 'queue', 'ignore')),
  delivered INTEGER NOT NULL CHECK (delivered IN (0, 1))
) STRICT;
CREATE INDEX github_turns_waiting ON github_turns (seq) WHERE delivered = 0;

CREATE TABLE github_cursors (
  repo TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('issue', 'comment')),
  since INTEGER NOT NULL,
  etag TEXT NOT NULL,
  PRIMARY KEY (repo, kind)
) STRICT, WITHOUT ROWID;
)"},
    {"the branch that Work began from", R"(
ALTER TABLE work ADD COLUMN began_from TEXT NOT NULL DEFAULT '';
)"},
};

}  // namespace

kj::ArrayPtr<const Migration> migrations() { return kj::arrayPtr(STEPS, kj::size(STEPS)); }

int schemaVersion(SQLite::Database& database) { return database.execAndGet("PRAGMA user_version").getInt(); }

void migrate(SQLite::Database& database, kj::ArrayPtr<const Migration> steps) {
  for (size_t version = schemaVersion(database); version < steps.size(); ++version) {
    SQLite::Transaction transaction(database);
    database.exec(steps[version].sql);
    // Pragmas take no parameters.
    database.exec("PRAGMA user_version = " + std::to_string(version + 1));
    transaction.commit();
    logDebug("state database: version {}, with {}", version + 1, steps[version].what);
  }
}

}  // namespace oc::state
