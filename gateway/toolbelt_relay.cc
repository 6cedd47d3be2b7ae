#include "toolbelt_relay.h"

#include <memory>

#include "base/accept.h"
#include "base/log.h"
#include "proto/rpc.h"
#include "socket_file.h"

namespace oc::gateway {

namespace {

// One agent's MCP client and its git: a few. What is beyond is closed at once.
constexpr unsigned mostConnections = 64;
constexpr size_t pieceBytes = 32 << 10;

// The agent's connection, shared by both directions.
struct Shared : kj::Refcounted {
  explicit Shared(kj::Own<kj::AsyncIoStream> stream) : stream(kj::mv(stream)) {}
  kj::Own<kj::AsyncIoStream> stream;
};

// What the shim says to the agent. Without an end(), the connection is aborted: `ended` is rejected.
class ToAgent final : public proto::ByteSink::Server {
 public:
  ToAgent(kj::Own<Shared> agent, kj::Own<kj::PromiseFulfiller<void>> ended, kj::Own<proto::RestingAnswers> answers)
      : agent(kj::mv(agent)), ended(kj::mv(ended)), answers(kj::mv(answers)) {}
  ~ToAgent() noexcept {
    if (ended->isWaiting()) ended->reject(KJ_EXCEPTION(DISCONNECTED, "the toolbelt ended the connection"));
  }

 protected:
  kj::Promise<void> write(WriteContext context) override {
    auto bytes = context.getParams().getBytes();
    // The parameters live as long as the call, and the call until it is written: that is the flow control.
    return writes.write(*agent->stream, bytes).then([this]() { return answers->next(); });
  }

  kj::Promise<void> end(EndContext) override {
    return writes.all().then([this]() {
      agent->stream->shutdownWrite();
      ended->fulfill();
    });
  }

 private:
  kj::Own<Shared> agent;
  kj::Own<kj::PromiseFulfiller<void>> ended;
  kj::Own<proto::RestingAnswers> answers;
  proto::OrderedWrites writes;
};

// What the agent says, to the shim, until it ends.
class FromAgent {
 public:
  FromAgent(kj::Own<Shared> agent, proto::ByteSink::Client to, kj::Array<kj::byte> buffer)
      : agent(kj::mv(agent)), to(kj::mv(to)), buffer(kj::mv(buffer)) {}

  // `size` bytes are in the buffer already.
  kj::Promise<void> send(size_t size) {
    if (size == 0) return to.end();
    return to.write(buffer.slice(0, size))
        .then([this]() { return agent->stream->tryRead(buffer.begin(), 1, buffer.size()); })
        .then([this](size_t n) { return send(n); });
  }

 private:
  kj::Own<Shared> agent;
  proto::SinkWriter to;
  kj::Array<kj::byte> buffer;
};

// A join alone evaluates nothing of its branches before all are ready, and waits for the second when the first has
// failed.
kj::Promise<void> untilBothEndOrOneFails(kj::Promise<void> a, kj::Promise<void> b) {
  auto failed = kj::newPromiseAndFulfiller<void>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<void>>>(kj::mv(failed.fulfiller));
  auto both = kj::heapArrayBuilder<kj::Promise<void>>(2);
  for (auto branch : {&a, &b}) {
    both.add(branch->catch_([fulfiller](kj::Exception&& exception) { (*fulfiller)->reject(kj::mv(exception)); })
                 .eagerlyEvaluate(nullptr));
  }
  // Kept until the join is done: a fulfiller that goes away unused rejects its promise.
  return kj::joinPromises(both.finish()).attach(std::move(fulfiller)).exclusiveJoin(kj::mv(failed.promise));
}

}  // namespace

ToolbeltRelay::ToolbeltRelay(kj::LowLevelAsyncIoProvider& io, const std::string& path, proto::GatewayHost::Client host)
    : io(io), host(kj::mv(host)), answers(kj::refcounted<proto::RestingAnswers>(io.getTimer())), tasks(*this) {
  listenAlso(listenAt(path));
}

void ToolbeltRelay::listenAlso(kj::AutoCloseFd fd) {
  auto listener = io.wrapListenSocketFd(
      kj::mv(fd), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC | kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
  auto& ref = *listener;
  tasks.add(acceptForever(ref, io.getTimer(), "the toolbelt's socket", [this](kj::Own<kj::AsyncIoStream> agent) {
              take(kj::mv(agent));
            }).attach(kj::mv(listener)));
}

void ToolbeltRelay::take(kj::Own<kj::AsyncIoStream> agent) {
  if (open >= mostConnections) return;
  ++open;
  tasks.add(serve(kj::mv(agent)).attach(kj::defer([this]() { --open; })));
}

kj::Promise<void> ToolbeltRelay::serve(kj::Own<kj::AsyncIoStream> stream) {
  auto agent = kj::refcounted<Shared>(kj::mv(stream));
  auto buffer = kj::heapArray<kj::byte>(pieceBytes);
  auto& first = *agent->stream;
  auto into = buffer.begin();
  // Who connects and says nothing is no connection to the toolbelt.
  return first.tryRead(into, 1, pieceBytes)
      .then([this, agent = kj::mv(agent), buffer = kj::mv(buffer)](size_t n) mutable -> kj::Promise<void> {
        if (n == 0) return kj::READY_NOW;
        auto ended = kj::newPromiseAndFulfiller<void>();
        auto request = host.toolbeltRequest();
        request.setToAgent(kj::heap<ToAgent>(kj::addRef(*agent), kj::mv(ended.fulfiller), kj::addRef(*answers)));
        auto answer = request.send();
        auto fromAgent = kj::heap<FromAgent>(kj::mv(agent), answer.getFromAgent(), kj::mv(buffer));
        auto up = fromAgent->send(n).attach(kj::mv(fromAgent));
        auto down = answer.ignoreResult().then([ended = kj::mv(ended.promise)]() mutable { return kj::mv(ended); });
        return untilBothEndOrOneFails(kj::mv(up), kj::mv(down));
      });
}

void ToolbeltRelay::taskFailed(kj::Exception&& exception) {
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) return;
  logWarning("a connection to the toolbelt ended: {}", describe(exception));
}

}  // namespace oc::gateway
