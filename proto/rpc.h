// Cap'n Proto over one stream, with limits that a hostile peer cannot get past.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/timer.h>

#include <cstdint>
#include <string>

namespace oc {

struct RpcLimits {
  // 8 MiB in a message of the peer's, 32 levels deep: a larger or deeper one closes the connection. Ours may always
  // have 8 MiB.
  uint64_t messageWords = (8u << 20) / 8;
  int nesting = 32;
  // Calls of the peer that are not answered yet, in words of their messages: beyond it nothing more is read.
  size_t flowWords = (2u << 20) / 8;
  // Everything the peer may ever send on this connection; beyond it the connection is closed. It bounds what
  // flow control does not count: bootstraps, unfinished answers, releases. 0: no bound (trusted peers).
  // The smallest message has 32 bytes and can cost us some 400, so a bound of B costs at most 13 B.
  uint64_t totalBytes = 0;
};

// What the daemon grants an instance: enough for a run's events, not enough to grow the daemon.
RpcLimits instanceLimits();

// One end of a connection. Destroying it closes the stream and breaks what came over it.
class Connection {
 public:
  // `bootstrap` is what the peer gets when it asks; `name` says in errors who the peer is.
  Connection(kj::Own<kj::AsyncIoStream> stream, capnp::rpc::twoparty::Side side, capnp::Capability::Client bootstrap,
             RpcLimits limits, std::string name);
  ~Connection();
  KJ_DISALLOW_COPY(Connection);

  // What the peer offers. Calls of it fail when the peer is gone. As a server call it only while the peer is there.
  capnp::Capability::Client bootstrapOfPeer();
  // The peer has proved who it is: from here it has the limits of a trusted one.
  void trust();
  // Resolves when the peer is gone or was cut off.
  kj::Promise<void> onDisconnect();
  // Empty, or why the peer was cut off by us.
  const std::string& violation() const;

 private:
  struct Impl;
  kj::Own<Impl> impl;
};

[[noreturn]] void throwLate(const std::string& name, kj::Duration limit);

// The promise, or an OVERLOADED exception "NAME did not answer within N ms" when it takes longer. The call is
// cancelled then.
template <typename T>
kj::Promise<T> withDeadline(kj::Timer& timer, kj::Duration limit, std::string name, kj::Promise<T> promise) {
  auto late = timer.afterDelay(limit).then([limit, name = std::move(name)]() -> T { throwLate(name, limit); });
  return promise.exclusiveJoin(kj::mv(late));
}

// An exception's text as it may be shown or sent: without file names, bounded, printable.
std::string describe(const kj::Exception& exception);

}  // namespace oc
