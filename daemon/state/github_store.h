// What GitHub told, in the state database: each event once, with the Work or the turn that it made, in one transaction.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store.h"

namespace oc::state {

// What makes an event the same one: delivered again, late, or out of order.
struct GitHubEventKey {
  std::string repo;      // "owner/name", as the config has it
  bool comment = false;  // else an issue
  uint64_t id = 0;
  int64_t updatedAt = 0;
  std::string bodyHash;
};

struct GitHubWork {
  std::string work, connection, repo;
  uint64_t issue = 0;
  std::string route;           // its name
  std::string trigger;         // JSON: what it was that made the Work, as it was then
  int64_t triggeredAt = 0;     // milliseconds since 1970, by GitHub's clock
  bool closed = false;         // the issue has been seen closed since
  uint64_t statusComment = 0;  // 0: none yet
  std::string statusText;      // what it says
};

struct GitHubTurn {
  int64_t seq = 0;
  std::string work, key, text;
  std::string policy;  // inject, queue, ignore
};

struct GitHubCursor {
  int64_t since = 0;  // milliseconds since 1970
  std::string etag;   // for this `since`; empty: none
};

class GitHubStore {
 public:
  GitHubStore(SQLite::Database& database, const std::string& path) : database(database), path(path) {}

  bool seen(const GitHubEventKey& key);
  // An event of this issue or comment, whatever it said and when.
  bool seenBefore(const std::string& repo, bool comment, uint64_t id);

  // Each of these is one transaction: false, and nothing is written, when the event was known already.
  bool noteEvent(const GitHubEventKey& key);
  bool addWork(const GitHubEventKey& key, const WorkRow& work, const RunRow& run, const GitHubWork& origin);
  bool addTurn(const GitHubEventKey& key, const GitHubTurn& turn);
  bool noteClosed(const GitHubEventKey& key, const std::string& work);

  // Oldest first. One is delivered until it is told that it was; whoever takes it knows it again by its key.
  std::vector<GitHubTurn> waitingTurns();
  void turnDelivered(int64_t seq);

  std::optional<GitHubWork> origin(const std::string& work);
  // The latest Work that was made from the issue.
  std::optional<GitHubWork> latestOf(const std::string& repo, uint64_t issue);
  void setStatus(const std::string& work, uint64_t comment, const std::string& text);

  std::optional<GitHubCursor> cursor(const std::string& repo, bool comments);
  void setCursor(const std::string& repo, bool comments, const GitHubCursor& cursor);

 private:
  template <typename Access>
  auto doing(const char* what, Access&& access);
  bool insertEvent(const GitHubEventKey& key);
  std::optional<GitHubWork> readWork(const std::string& where, const std::string& first, int64_t second);

  SQLite::Database& database;
  std::string path;
};

}  // namespace oc::state
