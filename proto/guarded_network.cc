#include "guarded_network.h"

#include <capnp/rpc.capnp.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include <unordered_set>

#include "base/error.h"

namespace oc {

using Base = capnp::TwoPartyVatNetworkBase;
using Incoming = kj::Maybe<kj::Own<capnp::IncomingRpcMessage>>;

namespace {

// Cap'n Proto 1.0 and later say of most answers that nobody has to finish their question, and earlier ones don't know
// the word.
template <typename Return>
constexpr bool knowsNoFinish = requires(Return from) {
  from.getNoFinishNeeded();
};

template <typename Return>
bool needsNoFinish(Return from) {
  if constexpr (knowsNoFinish<Return>) return from.getNoFinishNeeded();
  return false;
}

}  // namespace

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

  void ask(uint32_t question) {
    open.insert(question);
    if (open.size() > bounds.openQuestions)
      cutOff(fmt::format("it has more than {} questions open", bounds.openQuestions));
  }

  // Finishing what was never asked, and asking twice by one number, is for the RPC system to notice: it ends the
  // connection.
  void look(capnp::IncomingRpcMessage& incoming) {
    auto message = incoming.getBody().getAs<capnp::rpc::Message>();
    switch (message.which()) {
      case capnp::rpc::Message::BOOTSTRAP: ask(message.getBootstrap().getQuestionId()); break;
      case capnp::rpc::Message::CALL:
        ask(message.getCall().getQuestionId());
        countCapabilities(message.getCall().getParams());
        break;
      case capnp::rpc::Message::FINISH: open.erase(message.getFinish().getQuestionId()); break;
      case capnp::rpc::Message::RETURN:
        if (message.getReturn().isResults()) countCapabilities(message.getReturn().getResults());
        break;
      default: break;
    }
  }

  // What we say.
  void lookAtAnswer(capnp::rpc::Message::Reader message) {
    if (!message.isReturn()) return;
    auto answer = message.getReturn();
    if (needsNoFinish(answer)) open.erase(answer.getAnswerId());
  }

  capnp::TwoPartyVatNetwork& inner;
  PeerBounds bounds;
  std::string& violation;
  std::unordered_set<uint32_t> open;           // the questions' numbers
  kj::Own<kj::PromiseFulfiller<void>> reader;  // waits until the peer has read
};

// A message of ours that is looked at when it is sent.
class GuardedNetwork::Outgoing final : public capnp::OutgoingRpcMessage {
 public:
  Outgoing(kj::Own<capnp::OutgoingRpcMessage> inner, std::shared_ptr<State> state)
      : inner(kj::mv(inner)), state(std::move(state)) {}

  capnp::AnyPointer::Builder getBody() override { return inner->getBody(); }
  void setFds(kj::Array<int> fds) override { inner->setFds(kj::mv(fds)); }
  size_t sizeInWords() override { return inner->sizeInWords(); }
  void send() override {
    state->lookAtAnswer(inner->getBody().getAs<capnp::rpc::Message>().asReader());
    inner->send();
  }

 private:
  kj::Own<capnp::OutgoingRpcMessage> inner;
  std::shared_ptr<State> state;
};

class GuardedNetwork::Guarded final : public Base::Connection {
 public:
  Guarded(kj::Own<Base::Connection> inner, std::shared_ptr<State> state)
      : inner(kj::mv(inner)), state(std::move(state)) {}

  kj::Own<capnp::RpcFlowController> newStream() override { return inner->newStream(); }
  capnp::rpc::twoparty::VatId::Reader getPeerVatId() override { return inner->getPeerVatId(); }
  kj::Own<capnp::OutgoingRpcMessage> newOutgoingMessage(kj::uint firstSegmentWords) override {
    auto message = inner->newOutgoingMessage(firstSegmentWords);
    if (!knowsNoFinish<capnp::rpc::Return::Reader>) return message;
    return kj::heap<Outgoing>(kj::mv(message), state);
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
