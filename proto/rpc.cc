#include "rpc.h"

#include <capnp/serialize-async.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "base/text.h"
#include "guarded_network.h"

namespace oc {

RpcLimits instanceLimits() {
  RpcLimits limits;
  limits.messageWords = (1u << 20) / 8;
  limits.flowWords = (64u << 10) / 8;
  limits.totalBytes = 1u << 20;
  return limits;
}

namespace {

// Counts what the peer sends and cuts it off when it is too much.
class BoundedStream final : public kj::AsyncIoStream {
 public:
  BoundedStream(kj::Own<kj::AsyncIoStream> inner, uint64_t limit, std::string& violation)
      : inner(kj::mv(inner)), limit(limit), violation(violation) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override {
    return inner->tryRead(buffer, minBytes, maxBytes).then([this](size_t n) {
      count += n;
      if (limit != 0 && count > limit) {
        violation = fmt::format("it sent more than {} bytes", limit);
        KJ_FAIL_REQUIRE("the peer sent more than it may", limit);
      }
      return n;
    });
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    return inner->write(buffer, size).then([this]() { tellWritten(); });
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner->write(pieces).then([this]() { tellWritten(); });
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner->whenWriteDisconnected(); }
  void shutdownWrite() override { inner->shutdownWrite(); }
  void abortRead() override { inner->abortRead(); }

  void liftLimit() { limit = 0; }

  kj::Maybe<GuardedNetwork&> network;  // that is told when something was written

 private:
  void tellWritten() {
    KJ_IF_MAYBE (told, network) {
      told->wrote();
    }
  }

  kj::Own<kj::AsyncIoStream> inner;
  uint64_t limit;
  uint64_t count = 0;
  std::string& violation;
};

// Cap'n Proto holds what it sends to the bound of what it reads. What we say to a peer is ours, and may be longer.
class BoundedMessages final : public capnp::MessageStream {
 public:
  BoundedMessages(kj::AsyncIoStream& stream, uint64_t mostWords) : inner(stream), mostWords(mostWords) {}

  using capnp::MessageStream::tryReadMessage;
  using capnp::MessageStream::writeMessage;
  using capnp::MessageStream::writeMessages;

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(kj::ArrayPtr<kj::AutoCloseFd> fds,
                                                                    capnp::ReaderOptions options,
                                                                    kj::ArrayPtr<capnp::word> scratch) override {
    options.traversalLimitInWords = mostWords;
    return inner.tryReadMessage(fds, options, scratch);
  }
  kj::Promise<void> writeMessage(kj::ArrayPtr<const int> fds,
                                 kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override {
    return inner.writeMessage(fds, segments);
  }
  kj::Promise<void> writeMessages(kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override {
    return inner.writeMessages(messages);
  }
  kj::Maybe<int> getSendBufferSize() override { return inner.getSendBufferSize(); }
  kj::Promise<void> end() override { return inner.end(); }

  void setMost(uint64_t words) { mostWords = words; }

 private:
  capnp::AsyncIoMessageStream inner;
  uint64_t mostWords;
};

capnp::ReaderOptions readerOptions(const RpcLimits& limits) {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = std::max(limits.messageWords, RpcLimits().messageWords);
  options.nestingLimit = limits.nesting;
  return options;
}

// Who asks for the bootstrap where there is none makes Cap'n Proto 0.9 read beyond an empty table: a null capability
// has no entry in it. One that only fails has.
capnp::Capability::Client neverNull(capnp::Capability::Client bootstrap) {
  if (!capnp::ClientHook::from(bootstrap)->isNull()) return bootstrap;
  return KJ_EXCEPTION(FAILED, "nothing is offered on this connection");
}

}  // namespace

struct Connection::Impl {
  Impl(kj::Own<kj::AsyncIoStream> raw, capnp::rpc::twoparty::Side side, capnp::Capability::Client bootstrap,
       const RpcLimits& limits, std::string name)
      : name(kj::mv(name)),
        stream(kj::heap<BoundedStream>(kj::mv(raw), limits.totalBytes, violation)),
        messages(*stream, limits.messageWords),
        network(messages, side, readerOptions(limits)),
        guarded(network, PeerBounds(), violation),
        system(capnp::makeRpcServer(guarded, neverNull(kj::mv(bootstrap)))),
        side(side) {
    stream->network = guarded;
    system.setFlowLimit(limits.flowWords);
  }

  std::string name;
  std::string violation;
  kj::Own<BoundedStream> stream;
  BoundedMessages messages;
  capnp::TwoPartyVatNetwork network;
  GuardedNetwork guarded;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
  capnp::rpc::twoparty::Side side;
  // Asked for once. On a connection that is gone, Cap'n Proto 0.9 answers a second question by an exception that meets
  // another one on its way out, and that ends the program; a call of what was got before just fails.
  kj::Maybe<capnp::Capability::Client> peer;
};

Connection::Connection(kj::Own<kj::AsyncIoStream> stream, capnp::rpc::twoparty::Side side,
                       capnp::Capability::Client bootstrap, RpcLimits limits, std::string name)
    : impl(kj::heap<Impl>(kj::mv(stream), side, kj::mv(bootstrap), limits, kj::mv(name))) {
  // Now, since the peer may be gone at any later moment. Servers ask their clients for nothing.
  if (side == capnp::rpc::twoparty::Side::CLIENT) bootstrapOfPeer();
}

Connection::~Connection() = default;

capnp::Capability::Client Connection::bootstrapOfPeer() {
  KJ_IF_MAYBE (known, impl->peer) {
    return *known;
  }
  capnp::MallocMessageBuilder message(8);
  auto peer = message.initRoot<capnp::rpc::twoparty::VatId>();
  peer.setSide(impl->side == capnp::rpc::twoparty::Side::CLIENT ? capnp::rpc::twoparty::Side::SERVER
                                                                : capnp::rpc::twoparty::Side::CLIENT);
  auto asked = impl->system.bootstrap(peer);
  impl->peer = asked;
  return asked;
}

kj::Promise<void> Connection::onDisconnect() { return impl->network.onDisconnect(); }

void Connection::trust() {
  RpcLimits trusted;
  impl->stream->liftLimit();
  impl->messages.setMost(trusted.messageWords);
  impl->system.setFlowLimit(trusted.flowWords);
}

const std::string& Connection::violation() const { return impl->violation; }

void throwLate(const std::string& name, kj::Duration limit) {
  kj::throwFatalException(kj::Exception(kj::Exception::Type::OVERLOADED, __FILE__, __LINE__,
                                        kj::str(name.c_str(), " did not answer within ", limit / kj::SECONDS, " s")));
}

std::string describe(const kj::Exception& exception) {
  std::string_view text(exception.getDescription().cStr(), exception.getDescription().size());
  // A peer's exception comes as "remote exception: …": whose it is, the caller says.
  constexpr std::string_view remote = "remote exception: ";
  while (text.starts_with(remote)) text.remove_prefix(remote.size());
  // KJ_REQUIRE puts the condition before the sentence that we gave it.
  auto sentence = text.find("; ");
  if (text.starts_with("expected ") && sentence != std::string_view::npos) text.remove_prefix(sentence + 2);
  return shortened(printable(text), 1024);
}

}  // namespace oc
