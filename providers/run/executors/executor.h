// What an executor is, in the shim: it knows one kind of agent's streams. The sandbox's parent starts the agent; the
// shim moves its bytes; the executor says what they mean. Another kind of agent is one file more.
#pragma once

#include <kj/array.h>

#include <memory>
#include <string>

#include "providers/run/log.h"

namespace oc::run {

class Executor {
 public:
  virtual ~Executor() = default;

  enum class Stream { Output, Errors };
  // Bytes as they came, without waiting for a line's end.
  virtual void received(Stream stream, kj::ArrayPtr<const kj::byte> bytes, RunLog& log) = 0;
  // The agent is gone and its streams are read to their end.
  virtual void finished(RunLog&) {}
};

// Throws for a name that is none.
std::unique_ptr<Executor> makeExecutor(const std::string& name, const std::string& configJson);

}  // namespace oc::run
