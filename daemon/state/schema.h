// The form of the database, and the steps that lead to it.
#pragma once

#include <SQLiteCpp/Database.h>
#include <kj/common.h>

namespace oc::state {

struct Migration {
  const char* what;  // for the log and for an error: what this step brings
  const char* sql;
};

// Step N takes a database from version N to N + 1. A step that was released is never changed: a new one is
// added.
kj::ArrayPtr<const Migration> migrations();

// "OCst", in the file's header: tells our databases from others.
constexpr int APPLICATION_ID = 0x4f437374;

// What `PRAGMA user_version` says: how many steps the database has behind it.
int schemaVersion(SQLite::Database& database);

// Takes each step that is missing in a transaction of its own, so that a failure leaves the version before
// it, whole. Throws SQLite::Exception.
void migrate(SQLite::Database& database, kj::ArrayPtr<const Migration> steps);

}  // namespace oc::state
