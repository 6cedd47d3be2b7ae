// One running provider, as the daemon sees it: locked down, verified, and reachable over RPC.
#pragma once

#include <kj/async-unix.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/spawn.h"
#include "base/watch.h"
#include "common.capnp.h"
#include "proto/convert.h"
#include "proto/rpc.h"

namespace oc::supervisor {

class Supervisor;

class Instance {
 public:
  Instance(Supervisor& owner, std::string provider, std::string job);
  // Ends it (SIGKILL, and its whole tree where it has a pid namespace), unless it outlives us.
  ~Instance() noexcept(false);
  KJ_DISALLOW_COPY(Instance);

  const std::string& provider() const { return providerName; }
  const std::string& job() const { return jobText; }
  pid_t pid() const { return servingPid; }
  int64_t startedAt() const { return startTime; }
  const Protections& protections() const { return inForce; }

  template <typename T>
  typename T::Client as() {
    return connection->bootstrapOfPeer().castAs<T>();
  }
  // Resolves when the connection is gone: it ended, or was cut off for sending too much (see violation).
  kj::Promise<void> onDisconnect() { return connection->onDisconnect(); }
  const std::string& violation() const { return connection->violation(); }
  // Resolves when the process has ended. More than one may ask.
  kj::Promise<ProcessEnd> onEnd() { return ended.addBranch(); }
  void kill();

 private:
  friend class Supervisor;

  Supervisor& owner;
  std::string providerName, jobText;
  bool outlivesUs = false;  // never before it is ready
  int64_t startTime;
  Spawned spawned{0, nullptr};  // the process that was started
  pid_t servingPid = 0;         // the one that serves: a child of that, or itself
  kj::AutoCloseFd servingPidfd;
  Protections inForce;
  kj::Own<Connection> connection;
  kj::ForkedPromise<ProcessEnd> ended = nullptr;
};

}  // namespace oc::supervisor
