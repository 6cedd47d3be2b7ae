#include "rows.h"

#include <string_view>

#include "base/json.h"

namespace oc::state {

namespace {

// In the order of the enumerations, and as the schema's checks list them.
constexpr const char* RUN_STATES[] = {"queued", "preparing", "running", "saving", "cleaning", "ended"};
constexpr const char* OUTCOMES[] = {"none", "succeeded", "failed", "refused", "stopped", "interrupted"};
constexpr const char* WORK_STATES[] = {"open", "finishing", "cancelling", "finished", "cancelled"};

template <typename Enum, size_t SIZE>
std::string wordIn(const char* const (&words)[SIZE], Enum value) {
  auto index = static_cast<size_t>(value);
  KJ_REQUIRE(index < SIZE, "no such value", index);
  return words[index];
}

template <typename Enum, size_t SIZE>
void readWord(const char* const (&words)[SIZE], const SQLite::Column& column, Enum& value) {
  std::string word = column.getString();
  for (size_t i = 0; i < SIZE; ++i) {
    if (word == words[i]) {
      value = static_cast<Enum>(i);
      return;
    }
  }
  KJ_FAIL_REQUIRE("the state database holds a word that it cannot have been given", column.getName());
}

}  // namespace

std::string toWord(RunState state) { return wordIn(RUN_STATES, state); }
std::string toWord(Outcome outcome) { return wordIn(OUTCOMES, outcome); }
std::string toWord(WorkState state) { return wordIn(WORK_STATES, state); }

void bindValue(SQLite::Statement& statement, int index, const std::string& value) {
  statement.bind(index, value);
}
void bindValue(SQLite::Statement& statement, int index, bool value) { statement.bind(index, value ? 1 : 0); }
void bindValue(SQLite::Statement& statement, int index, RunState value) {
  statement.bind(index, toWord(value));
}
void bindValue(SQLite::Statement& statement, int index, Outcome value) {
  statement.bind(index, toWord(value));
}
void bindValue(SQLite::Statement& statement, int index, WorkState value) {
  statement.bind(index, toWord(value));
}

void bindValue(SQLite::Statement& statement, int index, const std::vector<std::string>& value) {
  // A warning may quote bytes that are not UTF-8; they are shown as such, and do not keep the row from being
  // written.
  statement.bind(index, nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void readValue(const SQLite::Column& column, std::string& value) { value = column.getString(); }
void readValue(const SQLite::Column& column, bool& value) { value = column.getInt() != 0; }
void readValue(const SQLite::Column& column, RunState& value) { readWord(RUN_STATES, column, value); }
void readValue(const SQLite::Column& column, Outcome& value) { readWord(OUTCOMES, column, value); }
void readValue(const SQLite::Column& column, WorkState& value) { readWord(WORK_STATES, column, value); }

void readValue(const SQLite::Column& column, std::vector<std::string>& value) {
  auto array = parseJson(column.getString());
  KJ_REQUIRE(array.is_array(), "the state database holds no list where one was written", column.getName());
  value.clear();
  for (const auto& item : array) {
    KJ_REQUIRE(item.is_string(), "the state database holds a list of other things than texts",
               column.getName());
    value.push_back(item.get<std::string>());
  }
}

}  // namespace oc::state
