// The daemon's state: Work, runs, what was intended and what came of it. SQLite, WAL; every write is synced
// before it returns (synchronous=FULL). One process at a time: the store takes a lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/refusal.h"

namespace oc::state {

// The steps of a run, in order. A run is at the step whose effects may have begun.
enum class RunState { Queued, Preparing, Running, Saving, Cleaning, Ended };
enum class Outcome { None, Succeeded, Failed, Refused, Stopped, Interrupted };
enum class WorkState { Open, Finishing, Cancelling, Finished, Cancelled };

std::string toWord(RunState);
std::string toWord(Outcome);
std::string toWord(WorkState);

// What an agent used, over a run.
struct Usage {
  uint64_t inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0;
  uint64_t costMicroUsd = 0;  // millionths of a US dollar
  uint32_t turns = 0;
};

// What went through a run's gateway.
struct NetworkTotals {
  uint64_t allowed = 0, denied = 0, bytesUp = 0, bytesDown = 0;
};

// Something that a run's policy refused.
struct Denial {
  std::string kind, what, why;  // kind: read, write, host, socket
};

struct WorkNote {
  std::string run;
  int64_t at = 0;
  std::string text;
};

struct WorkRow {
  std::string id, scope, binding, title;
  std::string bodyFile;  // the request's body, in the state directory; empty: none
  WorkState state = WorkState::Open;
  int64_t createdAt = 0, endedAt = 0;  // milliseconds since 1970
  std::string checkout, workspaceMode, branch;
  std::string base;            // the commit its branch began at; empty before the first clone
  std::string from;            // the checkout's branch that it began as; empty: none, or not known
  std::string savedTip;        // the commit that the checkout has of it; empty: none yet
  std::string savedAs;         // the branch there; differs from `branch` when the operator's was in the way
  bool workspaceMade = false;  // written before it is made
  std::vector<std::string> warnings;
  std::string session;       // the agent's own, that the next run resumes; empty: none
  bool finishAsked = false;  // by its agent: it is finished when its run has ended
};

struct RunRow {
  std::string id, work;
  RunState state = RunState::Queued;
  Outcome outcome = Outcome::None;
  std::string reason, message, fix;
  int exitCode = -1;
  int64_t createdAt = 0, startedAt = 0, endedAt = 0;
  uint32_t attempt = 1;
  std::string policyKind, planSha256;
  uint32_t commits = 0;
  std::string savedAs;
  std::vector<std::string> notes;
  // For adoption:
  int32_t shimPid = 0, sandboxPid = 0;
  uint64_t lastSeq = 0;  // of the shim's events that the database has
  bool stopAsked = false;
  std::string session;  // the agent's own
  Usage usage;
  NetworkTotals network;
  std::vector<Denial> denied;
};

class GitHubStore;

class Store {
 public:
  // Opens or makes the database at `path` (0600) in a directory that is there, takes the lock (`path`.lock),
  // checks integrity, applies migrations. Refuses: `state_locked` (another daemon; names its pid),
  // `state_newer` (made by a newer version; nothing is touched), `state_damaged` (or something else is in its
  // place), `state_unwritable`.
  //
  // Everything below throws when the database fails (a full disk: nothing of that call was written, and the
  // next one may succeed), and when it holds what was never written to it. Rows keep the order in which they
  // were added.
  static OrRefusal<std::unique_ptr<Store>> open(const std::string& path);
  virtual ~Store() = default;

  // ---- Work
  virtual void addWork(const WorkRow& work) = 0;
  virtual void updateWork(const WorkRow& work) = 0;  // must be there; not id, scope, binding, createdAt
  virtual std::optional<WorkRow> work(const std::string& id) = 0;
  virtual std::vector<WorkRow> allWork() = 0;                 // newest first
  virtual std::vector<WorkRow> recentWork(size_t limit) = 0;  // newest first
  virtual size_t countWork() = 0;

  // ---- runs
  virtual void addRun(const RunRow& run) = 0;     // its Work must be there
  virtual void updateRun(const RunRow& run) = 0;  // must be there; all but id, work, createdAt
  virtual std::optional<RunRow> run(const std::string& id) = 0;
  virtual std::vector<RunRow> runsOf(const std::string& work) = 0;  // oldest first
  virtual std::vector<RunRow> recentRuns(size_t limit) = 0;         // newest first
  virtual std::vector<RunRow> unendedRuns() = 0;                    // oldest first
  virtual size_t countRuns() = 0;

  // Adds Work and its first run in one transaction.
  virtual void addWorkWithRun(const WorkRow& work, const RunRow& run) = 0;

  // ---- what a Work's runs noted on it, oldest first
  virtual void addNote(const std::string& work, const WorkNote& note) = 0;
  virtual std::vector<WorkNote> notes(const std::string& work, size_t latest) = 0;

  // ---- the pinned plan: canonical JSON, kept as it was when the run was decided. Throws if there is one
  // already, or if the hash is not that of the text.
  virtual void pinPlan(const std::string& run, const std::string& json, const std::string& sha256) = 0;
  // Of a run that was decided and has not begun: it is decided anew. None there: nothing is done.
  virtual void dropPlan(const std::string& run) = 0;
  // Throws when the stored text does not have the stored hash any more.
  virtual std::optional<std::string> plan(const std::string& run) = 0;

  // ---- the key that a run's shim and the daemon share (32 bytes); deleted when the run ends,
  // from the file's free space too. Setting one again replaces it; dropping what is not there does nothing.
  virtual void setRunKey(const std::string& run, const SecretBytes& key) = 0;
  virtual std::optional<SecretBytes> runKey(const std::string& run) = 0;
  virtual void dropRunKey(const std::string& run) = 0;

  // What `PRAGMA integrity_check` says; "ok".
  virtual std::string integrity() = 0;

  // What GitHub told; see github_store.h. Throws where there is none.
  virtual GitHubStore& gitHub();
};

}  // namespace oc::state
