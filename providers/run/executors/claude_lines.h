// What one line of Claude Code's `--output-format stream-json` says, as far as a run needs to know. A line may be of
// any size, its fields in any order, and its bytes anything: it is scanned as it passes, and a few KiB are kept of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_scanner.h"
#include "executor.h"

namespace oc::run {

struct ClaudeLine {
  std::string type, subtype, session, uuid;
  std::string commandUuid, state;  // command_lifecycle
  bool isReplay = false, isError = false;
  std::string result, error;                   // the first KiB of each
  std::string apiStatus;                       // api_error_status, error_status
  std::map<std::string, std::string> servers;  // MCP servers of init: name → status; at most 64
  bool hasUsage = false;
  AgentUsage usage;  // of all models so far
  double costUsd = 0;
};

class ClaudeLineReader final : private JsonScanner::Handler {
 public:
  ClaudeLineReader();

  void feed(std::string_view bytes);
  // At the line's end: null when it was no JSON object with a type. Valid until the next feed.
  const ClaudeLine* finish();
  // The beginning of the line, for one that is plain text; at most 1 KiB.
  const std::string& beginning() const { return first; }

 private:
  bool wants(const JsonScanner::Path& path) override;
  void scalar(const JsonScanner::Path& path, JsonScanner::Kind kind, std::string_view value) override;
  void topScalar(const std::string& key, JsonScanner::Kind kind, std::string_view value);
  void modelUsage(const std::string& key, std::string_view value);

  JsonScanner scanner;
  ClaudeLine line;
  std::string first, serverName, serverStatus;
  bool ended = true;
};

}  // namespace oc::run
