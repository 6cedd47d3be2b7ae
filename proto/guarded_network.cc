#include "guarded_network.h"

#include <capnp/rpc.capnp.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include "base/error.h"

namespace oc {

using Base = capnp::TwoPartyVatNetworkBase;
using Incoming = kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>;

struct GuardedNetwork::State {
  State(capnp::TwoPartyVatNetwork& inner, PeerBounds bounds, std::string& violation)
      : inner(inner), bounds(bounds), violation(violation) {}

  [[noreturn]] void cutOff(std::string what) {
    violation = std::move(what);
    fail("the peer was cut off: " + violation);
  }

  void countCapabilities(capnp::rpc::Payload::Reader payload) {
    auto count = payload.getCapTable().size();
    if (count > bounds.capabilities) cutOff(fmt::format("it sent {} capabilities in one message", count));
  }

  // Finishing what was never asked is for the RPC system to notice: it ends the connection.
  void look(capnp::IncomingRpcMessage& incoming) {
    auto message = incoming.getBody().getAs<capnp::rpc::Message>();
    switch (message.which()) {
      case capnp::rpc::Message::BOOTSTRAP: ++open; break;
      case capnp::rpc::Message::CALL:
        ++open;
        countCapabilities(message.getCall().getParams());
        break;
      case capnp::rpc::Message::FINISH:
        if (open > 0) --open;
        break;
      case capnp::rpc::Message::RETURN:
        if (message.getReturn().isResults()) countCapabilities(message.getReturn().getResults());
        break;
      default: break;
    }
    if (open > bounds.openQuestions) cutOff(fmt::format("it has more than {} questions open", bounds.openQuestions));
  }

  capnp::TwoPartyVatNetwork& inner;
  PeerBounds bounds;
  std::string& violation;
  size_t open = 0;
  kj::Own<kj::PromiseFulfiller<void>> reader;  // waits until the peer has read
};

class GuardedNetwork::Guarded final : public Base::Connection {
 public:
  Guarded(kj::Own<Base::Connection> inner, std::shared_ptr<State> state)
      : inner(kj::mv(inner)), state(std::move(state)) {}

  kj::Own<capnp::RpcFlowController> newStream() override { return inner->newStream(); }
  capnp::rpc::twoparty::VatId::Reader getPeerVatId() override { return inner->getPeerVatId(); }
  kj::Own<capnp::OutgoingRpcMessage> newOutgoingMessage(kj::uint firstSegmentWords) override {
    return inner->newOutgoingMessage(firstSegmentWords);
  }
  kj::Promise<void> shutdown() override { return inner->shutdown(); }

  kj::Promise<Incoming> receiveIncomingMessage() override {
    if (state->inner.getCurrentQueueSize() > state->bounds.unreadBytes) {
      auto paf = kj::newPromiseAndFulfiller<void>();
      state->reader = kj::mv(paf.fulfiller);
      // The queue's own count goes down a few steps after the stream has written.
      return paf.promise.then([this]() { return kj::evalLast([this]() { return receiveIncomingMessage(); }); });
    }
    return inner->receiveIncomingMessage().then([state = state](Incoming incoming) {
      KJ_IF_MAYBE (message, incoming) {
        state->look(**message);
      }
      return incoming;
    });
  }

 private:
  kj::Own<Base::Connection> inner;
  std::shared_ptr<State> state;
};

GuardedNetwork::GuardedNetwork(capnp::TwoPartyVatNetwork& inner, PeerBounds bounds, std::string& violation)
    : state(std::make_shared<State>(inner, bounds, violation)) {}

GuardedNetwork::~GuardedNetwork() noexcept(false) = default;

void GuardedNetwork::wrote() {
  if (state->reader.get() != nullptr) kj::mv(state->reader)->fulfill();
}

kj::Maybe<kj::Own<Base::Connection>> GuardedNetwork::connect(capnp::rpc::twoparty::VatId::Reader host) {
  KJ_IF_MAYBE (connection, state->inner.connect(host)) {
    return kj::Own<Connection>(kj::heap<Guarded>(kj::mv(*connection), state));
  }
  return nullptr;
}

kj::Promise<kj::Own<Base::Connection>> GuardedNetwork::accept() {
  return state->inner.accept().then([state = state](kj::Own<Connection> connection) -> kj::Own<Connection> {
    return kj::heap<Guarded>(kj::mv(connection), state);
  });
}

}  // namespace oc
