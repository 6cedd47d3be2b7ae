// Between the RPC system and its stream: what a peer could grow us by, beside what flow control counts, is bounded
// here.
//
// - Questions that it has not finished: each holds an entry, and what was answered to a bootstrap, until it says that
// it is done.
// - Capabilities in one message: each is an object of ours, and a message of ours when it goes.
// - Answers that it does not read: nothing more is read of it until it does.
#pragma once

#include <capnp/rpc-twoparty.h>

#include <memory>
#include <string>

namespace oc {

struct PeerBounds {
  size_t openQuestions = 1024;
  size_t capabilities = 64;       // in a message
  size_t unreadBytes = 8u << 20;  // of ours; both peers of one connection never have as much at the same time
};

class GuardedNetwork final : public capnp::TwoPartyVatNetworkBase {
 public:
  // `violation` is told what the peer did when it is cut off. Both outlive this.
  GuardedNetwork(capnp::TwoPartyVatNetwork& inner, PeerBounds bounds, std::string& violation);
  ~GuardedNetwork() noexcept(false);

  // The stream has written something.
  void wrote();

  kj::Maybe<kj::Own<Connection>> connect(capnp::rpc::twoparty::VatId::Reader host) override;
  kj::Promise<kj::Own<Connection>> accept() override;

 private:
  class Guarded;
  class Outgoing;
  struct State;
  std::shared_ptr<State> state;
};

}  // namespace oc
