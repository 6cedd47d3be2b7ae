#include "claude_lines.h"

#include <stdlib.h>

#include <algorithm>

namespace oc::run {

namespace {

using Kind = JsonScanner::Kind;

constexpr size_t mostBeginning = 1024;
constexpr size_t mostServers = 64;
constexpr uint64_t mostCount = 1'000'000'000'000'000;

bool isOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

uint64_t toCount(std::string_view number) {
  auto value = strtod(std::string(number).c_str(), nullptr);
  return value > 0 && value < mostCount ? static_cast<uint64_t>(value) : 0;
}

// A line may name any number of models.
void addTo(uint64_t& sum, std::string_view number) { sum = std::min(sum + toCount(number), mostCount); }

}  // namespace

ClaudeLineReader::ClaudeLineReader() : scanner(*this) {}

void ClaudeLineReader::feed(std::string_view bytes) {
  if (ended) {
    line = ClaudeLine();
    first.clear();
    serverName.clear();
    serverStatus.clear();
    ended = false;
  }
  if (first.size() < mostBeginning) first += bytes.substr(0, mostBeginning - first.size());
  scanner.feed(bytes);
}

const ClaudeLine* ClaudeLineReader::finish() {
  bool whole = scanner.finish() && !ended;
  ended = true;
  line.usage.costMicroUsd =
      line.costUsd > 0 && line.costUsd < 1e9 ? static_cast<uint64_t>(line.costUsd * 1e6 + 0.5) : 0;
  return whole && !line.type.empty() ? &line : nullptr;
}

bool ClaudeLineReader::wants(const JsonScanner::Path& path) {
  if (path.size() == 1) {
    return isOneOf(path[0],
                   {"type", "subtype", "session_id", "uuid", "isReplay", "is_error", "result", "error", "error_status",
                    "api_error_status", "total_cost_usd", "num_turns", "command_uuid", "state"});
  }
  if (path.size() == 2) return path[0] == "errors";
  if (path.size() == 3) return path[0] == "modelUsage" || path[0] == "mcp_servers";
  return false;
}

void ClaudeLineReader::scalar(const JsonScanner::Path& path, Kind kind, std::string_view value) {
  if (path.size() == 1) return topScalar(path[0], kind, value);
  if (path[0] == "errors") {
    if (kind == Kind::Text && line.error.empty()) line.error = value;
  } else if (path[0] == "modelUsage") {
    modelUsage(path[2], value);
  } else if (kind == Kind::Text) {
    // One server after the other; a name and its status stand in one object.
    if (path[2] == "name") serverName = value;
    if (path[2] == "status") serverStatus = value;
    if (serverName.empty() || serverStatus.empty()) return;
    if (line.servers.size() < mostServers) line.servers[serverName] = serverStatus;
    serverName.clear();
    serverStatus.clear();
  }
}

void ClaudeLineReader::topScalar(const std::string& key, Kind kind, std::string_view value) {
  if (key == "isReplay") line.isReplay = kind == Kind::True;
  if (key == "is_error") line.isError = kind == Kind::True;
  if (kind == Kind::Number) {
    if (key == "total_cost_usd") line.costUsd = strtod(std::string(value).c_str(), nullptr);
    if (key == "num_turns") line.usage.turns = static_cast<uint32_t>(std::min<uint64_t>(toCount(value), 1'000'000));
    if (key == "error_status" || key == "api_error_status") line.apiStatus = value;
    return;
  }
  if (kind != Kind::Text) return;
  if (key == "type") line.type = value;
  if (key == "subtype") line.subtype = value;
  if (key == "session_id") line.session = value;
  if (key == "uuid") line.uuid = value;
  if (key == "command_uuid") line.commandUuid = value;
  if (key == "state") line.state = value;
  if (key == "result") line.result = value;
  if (key == "error" && line.error.empty()) line.error = value;
}

void ClaudeLineReader::modelUsage(const std::string& key, std::string_view value) {
  auto& usage = line.usage;
  line.hasUsage = true;
  if (key == "inputTokens") addTo(usage.inputTokens, value);
  if (key == "outputTokens") addTo(usage.outputTokens, value);
  if (key == "cacheReadInputTokens") addTo(usage.cacheReadTokens, value);
  if (key == "cacheCreationInputTokens") addTo(usage.cacheWriteTokens, value);
}

}  // namespace oc::run
