// The run's log: the agent's bytes as they come, up to a cap.
#pragma once

#include <kj/array.h>
#include <kj/io.h>

#include <cstdint>
#include <string>

namespace oc::run {

class RunLog {
 public:
  // `fd` is open for appending; `limit` counts what is in the file already.
  RunLog(kj::AutoCloseFd fd, uint64_t limit);

  // Appends what fits; the rest is counted and dropped, and the log ends with a line that says so. A disk that is full
  // drops, too: a run does not die of its log.
  void append(kj::ArrayPtr<const kj::byte> bytes);

  uint64_t written() const { return size; }
  uint64_t dropped() const { return droppedBytes; }
  // Why bytes were dropped; empty as long as none were.
  const std::string& trouble() const { return troubleText; }

 private:
  void put(const char* bytes, size_t length);

  kj::AutoCloseFd fd;
  uint64_t limit;
  uint64_t size = 0;
  uint64_t droppedBytes = 0;
  std::string troubleText;
};

}  // namespace oc::run
