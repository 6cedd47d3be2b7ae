// The proxy's socket and the connections that came by it.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "attempt.h"
#include "loop.h"
#include "policy.h"
#include "pump.h"
#include "resolver.h"

namespace oc::gateway {

struct ProxyLimits {
  size_t connections = 16384;         // open at once; more get 503
  size_t pipes = 256;                 // the kernel lets a user have no more of their size; who gets none copies
  size_t headBytes = 64 << 20;        // of long heads that wait, all together; more get 503
  size_t roomBytes = 16 << 20;        // for clients that read, among very many connections, all together
  int64_t headMilliseconds = 15'000;  // for a request's head to be complete
  int64_t resolveMilliseconds = 15'000;
  int64_t dialMilliseconds = 10'000;   // for each address, and thrice that for all of a host's
  int64_t lingerMilliseconds = 2'000;  // for a client to read a refusal
};

struct ProxyTotals {
  uint64_t allowed = 0, denied = 0, bytesUp = 0, bytesDown = 0;
};

class Session;

// Serves until it goes away; every connection goes with it.
class Proxy final : private Watcher {
 public:
  // Listens at `path`, in place of a socket that is there. Throws, naming the path.
  Proxy(Loop& loop, const std::string& path, Policy policy, Journal& journal, ProxyLimits limits);
  ~Proxy();

  // Sessions that are open and connected.
  uint32_t open() const { return connected; }
  // What has ended, and what open connections have moved so far.
  ProxyTotals totals() const;
  // The journal has room again.
  void resume();
  // Serves the connections of this one, too, which listens and does not block. For good.
  void listenAlso(kj::AutoCloseFd listener);

  const Policy& policy() const { return rules; }
  Resolver& names() { return resolver; }

 private:
  friend class Session;
  void ready(uint32_t events) override;
  bool accept(int listener);
  bool acceptSome(int listener);
  void ended(Session& session);

  Loop& loop;
  Policy rules;
  Journal& journal;
  ProxyLimits limits;
  Resolver resolver;
  PipePool pipes;
  std::vector<kj::AutoCloseFd> listeners;
  Timer retry;
  std::unordered_set<Session*> sessions;
  ProxyTotals done;
  uint32_t connected = 0;
  size_t headBytes = 0;   // held by sessions that are being opened
  size_t roomBytes = 0;   // given to clients that read
  bool heldBack = false;  // nobody is accepted until the journal has room
};

}  // namespace oc::gateway
