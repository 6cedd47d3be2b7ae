// What an executor is, in the shim: it knows one kind of agent's streams. The sandbox's parent starts the agent; the
// shim moves its bytes; the executor says what they mean, and what the agent is told. Another kind of agent is one file
// more.
#pragma once

#include <kj/array.h>
#include <kj/async.h>
#include <kj/time.h>

#include <memory>
#include <string>

#include "base/watch.h"
#include "providers/run/log.h"

namespace oc::run {

struct AgentUsage {
  uint64_t inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0;
  uint64_t costMicroUsd = 0;
  uint32_t turns = 0;
  bool operator==(const AgentUsage&) const = default;
};

// What became of a message: the agent has acknowledged it, or why it never will.
struct Delivery {
  bool delivered = false;
  std::string why;
};

// What an executor makes of the end. Without a word it has no say: the exit status is all.
struct Verdict {
  std::string word;  // "done", or one of docs/reasons.md
  std::string text;
};

// What an executor may do to its run.
class ExecutorHost {
 public:
  // Onto the agent's standard input, in order; nothing once that is closed.
  virtual void write(std::string bytes) = 0;
  // Once all of it is written.
  virtual void closeInput() = 0;
  // What of it the agent has not taken yet, in bytes.
  virtual size_t unwritten() const = 0;

  virtual void tellNote(const std::string& text) = 0;
  virtual void tellSession(const std::string& session) = 0;  // by which a later run resumes it
  virtual void tellUsage(const AgentUsage& usage) = 0;       // in all, so far

  // The agent has said its last word: what is still there after so long is ended. A later call replaces an earlier one.
  virtual void expectEnd(kj::Duration within) = 0;
  // It goes on after all.
  virtual void expectNoEnd() = 0;

 protected:
  ~ExecutorHost() = default;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // Before anything else, and before the agent is there: what it is told first.
  virtual void start(std::string brief) = 0;

  enum class Stream { Output, Errors };
  // Bytes as they came, without waiting for a line's end. They go to the log, and are interpreted.
  virtual void received(Stream stream, kj::ArrayPtr<const kj::byte> bytes, RunLog& log) = 0;

  // A message for the live agent. Resolves when the agent has acknowledged it, or will not. The same `id` twice is one
  // message, and both get its answer.
  virtual kj::Promise<Delivery> inject(const std::string& id, const std::string& text);

  // Asks the agent to stop what it does, in its own words. False: there are none for that, so TERM is the first.
  virtual bool interrupt() { return false; }

  // The agent is gone and its streams are read to their end. `ended` is how; unknown when nobody knows. Messages that
  // were not acknowledged will not be.
  virtual Verdict finished(const ProcessEnd& ended, RunLog& log);
};

// Throws for a name that is none, and for a config that is not the executor's. `host` outlives it.
std::unique_ptr<Executor> makeExecutor(const std::string& name, const std::string& configJson, ExecutorHost& host);

}  // namespace oc::run
