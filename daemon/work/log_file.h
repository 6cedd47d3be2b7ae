// Reading a run's log while its shim may still write to it.
#pragma once

#include <kj/async-unix.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace oc::work {

struct LogBytes {
  std::string bytes;  // as the agent wrote them; empty: there is no more yet
  uint64_t next = 0;  // where to go on
};

// All waiting is by one inotify instance, since a user may have 128 of them only; it is made when somebody
// waits.
class LogReader {
 public:
  explicit LogReader(kj::UnixEventPort& port);
  // Whoever still waits gets an exception.
  ~LogReader() noexcept;
  KJ_DISALLOW_COPY(LogReader);

  // What one read gives at most: an RPC's answer.
  static constexpr size_t MOST_BYTES = 256 << 10;

  // Up to MOST_BYTES from `offset`. A log that does not exist (yet) has no bytes. Throws when something else
  // than a regular file is in its place; a link at its last name is not followed.
  LogBytes read(const std::string& path, uint64_t offset);

  // Resolves when the log has more than `offset` bytes; right away if it has. Its file, and directories above
  // it, need not exist yet. Throws as `read` does, and when the system has no inotify left (it names the
  // setting). That the run ends is for the caller to notice: drop the promise then.
  kj::Promise<void> whenGrown(const std::string& path, uint64_t offset);

 private:
  class Inotify;
  class Waiting;

  Inotify& inotify();
  void forget(Waiting& waiting);
  void onEvent(int watch, bool watchIsGone);
  void failAll(const kj::Exception& reason);

  kj::UnixEventPort& port;
  std::set<Waiting*> all;
  std::unique_ptr<Inotify> inotifyOnceNeeded;
  kj::Promise<void> events = nullptr;
  bool deaf = false;  // reading inotify's events has failed, so nobody would ever be told
};

}  // namespace oc::work
