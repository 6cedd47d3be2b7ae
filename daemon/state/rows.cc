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

// A warning or a denial may quote bytes that are not UTF-8; they are shown as such, and do not keep the row from being
// written.
void bindJson(SQLite::Statement& statement, int index, const Json& value) {
  statement.bind(index, value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// What `read` takes from the column's JSON. Anything but what was written throws, naming the column.
template <typename Read>
void readJson(const SQLite::Column& column, Read&& read) {
  auto json = parseJson(column.getString());
  try {
    read(json);
  } catch (const Json::exception& exception) {
    KJ_FAIL_REQUIRE("the state database holds something else than was written", column.getName(), exception.what());
  }
}

}  // namespace

std::string toWord(RunState state) { return wordIn(RUN_STATES, state); }
std::string toWord(Outcome outcome) { return wordIn(OUTCOMES, outcome); }
std::string toWord(WorkState state) { return wordIn(WORK_STATES, state); }

void bindValue(SQLite::Statement& statement, int index, const std::string& value) { statement.bind(index, value); }
void bindValue(SQLite::Statement& statement, int index, bool value) { statement.bind(index, value ? 1 : 0); }
void bindValue(SQLite::Statement& statement, int index, RunState value) { statement.bind(index, toWord(value)); }
void bindValue(SQLite::Statement& statement, int index, Outcome value) { statement.bind(index, toWord(value)); }
void bindValue(SQLite::Statement& statement, int index, WorkState value) { statement.bind(index, toWord(value)); }

void bindValue(SQLite::Statement& statement, int index, const std::vector<std::string>& value) {
  bindJson(statement, index, value);
}

void bindValue(SQLite::Statement& statement, int index, const Usage& value) {
  bindJson(statement, index,
           {{"input_tokens", value.inputTokens},
            {"output_tokens", value.outputTokens},
            {"cache_read_tokens", value.cacheReadTokens},
            {"cache_write_tokens", value.cacheWriteTokens},
            {"cost_micro_usd", value.costMicroUsd},
            {"turns", value.turns}});
}

void bindValue(SQLite::Statement& statement, int index, const NetworkTotals& value) {
  bindJson(statement, index,
           {{"allowed", value.allowed},
            {"denied", value.denied},
            {"bytes_up", value.bytesUp},
            {"bytes_down", value.bytesDown}});
}

void bindValue(SQLite::Statement& statement, int index, const std::vector<Denial>& value) {
  auto list = Json::array();
  for (auto& denial : value) list.push_back({{"kind", denial.kind}, {"what", denial.what}, {"why", denial.why}});
  bindJson(statement, index, list);
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
    KJ_REQUIRE(item.is_string(), "the state database holds a list of other things than texts", column.getName());
    value.push_back(item.get<std::string>());
  }
}

void readValue(const SQLite::Column& column, Usage& value) {
  readJson(column, [&value](const Json& json) {
    value.inputTokens = json.at("input_tokens");
    value.outputTokens = json.at("output_tokens");
    value.cacheReadTokens = json.at("cache_read_tokens");
    value.cacheWriteTokens = json.at("cache_write_tokens");
    value.costMicroUsd = json.at("cost_micro_usd");
    value.turns = json.at("turns");
  });
}

void readValue(const SQLite::Column& column, NetworkTotals& value) {
  readJson(column, [&value](const Json& json) {
    value.allowed = json.at("allowed");
    value.denied = json.at("denied");
    value.bytesUp = json.at("bytes_up");
    value.bytesDown = json.at("bytes_down");
  });
}

void readValue(const SQLite::Column& column, std::vector<Denial>& value) {
  value.clear();
  readJson(column, [&value](const Json& json) {
    for (auto& item : json) value.push_back({item.at("kind"), item.at("what"), item.at("why")});
  });
}

}  // namespace oc::state
