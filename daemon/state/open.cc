// How the database is opened: who may have it, whether it is ours and whole, and what SQLite must promise.
#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sqlite3.h>

#include "base/text.h"
#include "daemon/state/schema.h"
#include "daemon/state/sqlite_store.h"

namespace oc::state {

namespace {

constexpr const char* MOVE_AWAY_OR_RESTORE =
    "restore a copy that was made before, or move {0}, {0}-wal and {0}-shm away together: without them the "
    "daemon "
    "begins with an empty history, and leaves the workspaces that it then does not know of alone";

Refusal damaged(const std::string& path, std::string_view found) {
  return {"state_damaged",
          fmt::format("the state database is damaged or is none: {}: {}", path, shortened(printable(found), 300)),
          fmt::format(fmt::runtime(MOVE_AWAY_OR_RESTORE), path)};
}

Refusal notOurs(const std::string& path) {
  return {"state_damaged", fmt::format("this is an SQLite database of another program: {}", path),
          fmt::format(fmt::runtime(MOVE_AWAY_OR_RESTORE), path)};
}

Refusal newer(const std::string& path, int version) {
  return {"state_newer",
          fmt::format("a newer version of Open Conduit made this state database (its format is {}, and {} is the last "
                      "that this version knows): {}",
                      version, migrations().size(), path),
          "install that version again, or a later one; nothing was changed"};
}

Refusal unwritable(const std::string& path, std::string_view found) {
  return {"state_unwritable",
          fmt::format("the state database cannot be written: {}: {}", path, shortened(printable(found), 300)),
          "make room on its disk, and make sure that the directory is yours and on a local disk that is not "
          "read-only"};
}

Refusal heldByOther(const std::string& path) {
  return {"state_locked", fmt::format("another program is writing to the state database: {}", path),
          "end that program (an sqlite3 shell in a transaction?) and start again"};
}

// What an error while opening means for a person. An error that says nothing of the file is thrown on.
Refusal refusalFor(const std::string& path, const SQLite::Exception& e) {
  switch (e.getErrorCode() & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return heldByOther(path);
    case SQLITE_IOERR:
      if (e.getExtendedErrorCode() == SQLITE_IOERR_READ) return damaged(path, e.what());
      if (e.getExtendedErrorCode() == SQLITE_IOERR_SHORT_READ) return damaged(path, e.what());
      return unwritable(path, e.what());
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM: return unwritable(path, e.what());
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT: throw e;
    default:
      // CORRUPT and NOTADB; ERROR, when tables are not as our statements know them; CONSTRAINT and others,
      // when they hold what we never wrote.
      return damaged(path, e.what());
  }
}

void setDatabaseFlag(SQLite::Database& database, int flag, bool on) {
  database.check(sqlite3_db_config(database.getHandle(), flag, on ? 1 : 0, nullptr));
}

std::unique_ptr<SQLite::Database> connect(const std::string& path) {
  auto database = std::make_unique<SQLite::Database>(path, SQLite::OPEN_READWRITE, BUSY_TIMEOUT_MS);
  // Until it is known to be ours, closing it must not write to it.
  setDatabaseFlag(*database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
  // The file may be anything: what its schema calls must not run, and what SQLite keeps for itself is not
  // writable.
  setDatabaseFlag(*database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, false);
  setDatabaseFlag(*database, SQLITE_DBCONFIG_DEFENSIVE, true);
  setDatabaseFlag(*database, SQLITE_DBCONFIG_ENABLE_TRIGGER, false);
  setDatabaseFlag(*database, SQLITE_DBCONFIG_ENABLE_VIEW, false);
  return database;
}

std::optional<Refusal> refuseWhatIsNotOurs(const std::string& path, SQLite::Database& database) {
  int version = schemaVersion(database);
  int application = database.execAndGet("PRAGMA application_id").getInt();
  bool fresh =
      version == 0 && application == 0 && database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
  if (!fresh && application != APPLICATION_ID) return notOurs(path);
  if (version < 0) return damaged(path, "its version is negative");
  if (version > static_cast<int>(migrations().size())) return newer(path, version);
  return std::nullopt;
}

std::optional<Refusal> configure(const std::string& path, SQLite::Database& database) {
  setDatabaseFlag(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
  if (database.execAndGet("PRAGMA journal_mode = WAL").getString() != "wal") {
    return unwritable(path, "the file system does not let SQLite keep a write-ahead log");
  }
  // Everything that is written is synced: what a run came to must outlast a power failure
  // as well, there are a few writes a second at most, and a second connection for what may be lost would be a
  // second order of events.
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA foreign_keys = ON");
  // Keys leave no bytes behind in the file's free space.
  database.exec("PRAGMA secure_delete = ON");
  database.exec("PRAGMA cell_size_check = ON");
  // A disk that fails must be an error, not a SIGBUS.
  database.exec("PRAGMA mmap_size = 0");
  // A log that grew while somebody read (a backup) shrinks again to this: four times what usually triggers a
  // checkpoint.
  database.exec("PRAGMA journal_size_limit = 16777216");
  return std::nullopt;
}

std::optional<Refusal> refuseDamage(const std::string& path, SQLite::Database& database) {
  // All of it: a run that an index lacks would be left behind alive. 0.3 s for 10,000 runs with plans of 8
  // KB, a tenth more than quick_check takes, which does not compare indices.
  auto found = database.execAndGet("PRAGMA integrity_check(1)").getString();
  if (found != "ok") return damaged(path, found);
  return std::nullopt;
}

OrRefusal<std::unique_ptr<Store>> openLocked(const std::string& path, StateLock lock) {
  auto database = connect(path);
  if (auto refusal = refuseWhatIsNotOurs(path, *database)) return *refusal;
  if (auto refusal = configure(path, *database)) return *refusal;
  // Before the migrations: they would spread the damage.
  if (auto refusal = refuseDamage(path, *database)) return *refusal;
  migrate(*database, migrations());
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(path, kj::mv(lock), std::move(database)));
}

}  // namespace

OrRefusal<std::unique_ptr<Store>> Store::open(const std::string& path) {
  auto lock = lockState(path);
  if (!lock) return lock.refusal();
  if (auto refusal = prepareStateFile(path)) return *refusal;
  try {
    return openLocked(path, std::move(lock).value());
  } catch (const SQLite::Exception& e) {
    return refusalFor(path, e);
  }
}

}  // namespace oc::state
