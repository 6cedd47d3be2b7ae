// Rows as SQLite has them. Each kind of row lists its columns once; the texts of the statements, what is
// bound to them and what is read from them all follow that list.
#pragma once

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Statement.h>
#include <kj/debug.h>

#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/state/store.h"

namespace oc::state {

// Fixed: given when the row is added, and not changed by an update.
enum class Column { Fixed, Changing };

template <typename Row, typename Visit>
requires std::same_as<std::remove_const_t<Row>, WorkRow>
void eachColumn(Row& row, Visit&& visit) {
  visit("id", row.id, Column::Fixed);
  visit("scope", row.scope, Column::Fixed);
  visit("binding", row.binding, Column::Fixed);
  visit("title", row.title, Column::Changing);
  visit("body_file", row.bodyFile, Column::Changing);
  visit("state", row.state, Column::Changing);
  visit("created_at", row.createdAt, Column::Fixed);
  visit("ended_at", row.endedAt, Column::Changing);
  visit("checkout", row.checkout, Column::Changing);
  visit("workspace_mode", row.workspaceMode, Column::Changing);
  visit("branch", row.branch, Column::Changing);
  visit("base", row.base, Column::Changing);
  visit("saved_tip", row.savedTip, Column::Changing);
  visit("saved_as", row.savedAs, Column::Changing);
  visit("workspace_made", row.workspaceMade, Column::Changing);
  visit("warnings", row.warnings, Column::Changing);
  visit("session", row.session, Column::Changing);
  visit("finish_asked", row.finishAsked, Column::Changing);
  visit("began_from", row.from, Column::Changing);
}

template <typename Row, typename Visit>
requires std::same_as<std::remove_const_t<Row>, RunRow>
void eachColumn(Row& row, Visit&& visit) {
  visit("id", row.id, Column::Fixed);
  visit("work", row.work, Column::Fixed);
  visit("state", row.state, Column::Changing);
  visit("outcome", row.outcome, Column::Changing);
  visit("reason", row.reason, Column::Changing);
  visit("message", row.message, Column::Changing);
  visit("fix", row.fix, Column::Changing);
  visit("exit_code", row.exitCode, Column::Changing);
  visit("created_at", row.createdAt, Column::Fixed);
  visit("started_at", row.startedAt, Column::Changing);
  visit("ended_at", row.endedAt, Column::Changing);
  visit("attempt", row.attempt, Column::Changing);
  visit("policy_kind", row.policyKind, Column::Changing);
  visit("plan_sha256", row.planSha256, Column::Changing);
  visit("commits", row.commits, Column::Changing);
  visit("saved_as", row.savedAs, Column::Changing);
  visit("notes", row.notes, Column::Changing);
  visit("shim_pid", row.shimPid, Column::Changing);
  visit("sandbox_pid", row.sandboxPid, Column::Changing);
  visit("last_seq", row.lastSeq, Column::Changing);
  visit("stop_asked", row.stopAsked, Column::Changing);
  visit("session", row.session, Column::Changing);
  visit("usage", row.usage, Column::Changing);
  visit("network", row.network, Column::Changing);
  visit("denied", row.denied, Column::Changing);
}

// ---- single values. Reading throws when the database has what the type cannot hold.

void bindValue(SQLite::Statement& statement, int index, const std::string& value);
void bindValue(SQLite::Statement& statement, int index, bool value);
void bindValue(SQLite::Statement& statement, int index, RunState value);
void bindValue(SQLite::Statement& statement, int index, Outcome value);
void bindValue(SQLite::Statement& statement, int index, WorkState value);
void bindValue(SQLite::Statement& statement, int index,
               const std::vector<std::string>& value);                        // a JSON array
void bindValue(SQLite::Statement& statement, int index, const Usage& value);  // JSON, here and below
void bindValue(SQLite::Statement& statement, int index, const NetworkTotals& value);
void bindValue(SQLite::Statement& statement, int index, const std::vector<Denial>& value);

void readValue(const SQLite::Column& column, std::string& value);
void readValue(const SQLite::Column& column, bool& value);
void readValue(const SQLite::Column& column, RunState& value);
void readValue(const SQLite::Column& column, Outcome& value);
void readValue(const SQLite::Column& column, WorkState& value);
void readValue(const SQLite::Column& column, std::vector<std::string>& value);
void readValue(const SQLite::Column& column, Usage& value);
void readValue(const SQLite::Column& column, NetworkTotals& value);
void readValue(const SQLite::Column& column, std::vector<Denial>& value);

template <std::integral Number>
requires(!std::same_as<Number, bool>) void bindValue(SQLite::Statement& statement, int index, Number value) {
  KJ_REQUIRE(std::in_range<int64_t>(value), "a number is too large for the state database", value);
  statement.bind(index, static_cast<int64_t>(value));
}

template <std::integral Number>
requires(!std::same_as<Number, bool>) void readValue(const SQLite::Column& column, Number& value) {
  int64_t stored = column.getInt64();
  bool fits = stored >= static_cast<int64_t>(std::numeric_limits<Number>::min()) &&
              (sizeof(Number) == sizeof(int64_t) || stored <= static_cast<int64_t>(std::numeric_limits<Number>::max()));
  KJ_REQUIRE(fits, "the state database holds a number that it cannot have been given", column.getName(), stored);
  value = static_cast<Number>(stored);
}

// ---- whole rows

// For the names alone.
template <typename Row>
inline const Row columnsOf{};

template <typename Row>
void bindRow(SQLite::Statement& statement, const Row& row) {
  int index = 0;
  eachColumn(row,
             [&statement, &index](const char*, const auto& value, Column) { bindValue(statement, ++index, value); });
}

template <typename Row>
Row readRow(SQLite::Statement& statement) {
  Row row;
  int index = 0;
  eachColumn(
      row, [&statement, &index](const char*, auto& value, Column) { readValue(statement.getColumn(index++), value); });
  return row;
}

// "SELECT id, … FROM runs"
template <typename Row>
std::string selectFrom(const std::string& table) {
  std::string names;
  eachColumn(columnsOf<Row>, [&names](const char* name, const auto&, Column) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  });
  return "SELECT " + names + " FROM " + table;
}

// "INSERT INTO runs (id, …) VALUES (?1, …)"
template <typename Row>
std::string insertInto(const std::string& table) {
  std::string names, values;
  int index = 0;
  eachColumn(columnsOf<Row>, [&](const char* name, const auto&, Column) {
    std::string comma = index == 0 ? "" : ", ";
    names += comma + name;
    values += comma + "?" + std::to_string(++index);
  });
  return "INSERT INTO " + table + " (" + names + ") VALUES (" + values + ")";
}

// "UPDATE runs SET state = ?3, … WHERE id = ?1". The numbers are those of insertInto: bindRow serves both.
template <typename Row>
std::string updateOf(const std::string& table) {
  std::string changes;
  int index = 0;
  eachColumn(columnsOf<Row>, [&](const char* name, const auto&, Column column) {
    ++index;
    if (column == Column::Fixed) return;
    changes += (changes.empty() ? "" : ", ") + std::string(name) + " = ?" + std::to_string(index);
  });
  return "UPDATE " + table + " SET " + changes + " WHERE id = ?1";
}

}  // namespace oc::state
