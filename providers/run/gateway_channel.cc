#include "gateway_channel.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "providers/kit/frames.h"
#include "proto/convert.h"

namespace oc::run {

namespace {

// The gateway may still be on its way, and then has to find its networks and to listen. Where two hundred are being
// started at once, that takes a minute.
constexpr auto configureLimit = 115 * kj::SECONDS;
constexpr auto quietPause = 50 * kj::MILLISECONDS;
constexpr int quietTries = 20;
constexpr size_t maxChunk = 64u << 10;

// It parses what the agent sends, so it is bounded like a stranger, but for the total: a run may talk for days.
RpcLimits gatewayLimits() {
  auto limits = instanceLimits();
  limits.totalBytes = 0;
  return limits;
}

std::string bounded(capnp::Text::Reader text, size_t limit) { return shortened(printable(toString(text)), limit); }

std::string hostAndPort(proto::NetworkRecord::Reader record) {
  auto host = bounded(record.getHost(), 253);
  bool literal = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", literal ? "[" : "", host, literal ? "]" : "", record.getPort());
}

// Our end of a pipe to the toolbelt's server; both directions hold it.
struct RelayEnd : public kj::Refcounted {
  explicit RelayEnd(kj::Own<kj::AsyncIoStream> stream) : stream(kj::mv(stream)) {}
  kj::Own<kj::AsyncIoStream> stream;
};

// What comes from the gateway for the toolbelt's server.
class RelaySink final : public proto::ByteSink::Server {
 public:
  RelaySink(kj::Own<RelayEnd> end, kj::Own<proto::RestingAnswers> answers)
      : end_(kj::mv(end)), answers(kj::mv(answers)) {}
  ~RelaySink() noexcept(false) {
    writes.drop();
    if (ended) return;
    end_->stream->shutdownWrite();
    end_->stream->abortRead();
  }

  kj::Promise<void> write(WriteContext context) override {
    auto bytes = context.getParams().getBytes();
    KJ_REQUIRE(bytes.size() <= maxChunk, "a chunk of the toolbelt's relay has at most 64 KiB");
    return writes.write(*end_->stream, bytes).then([this]() { return answers->next(); });
  }
  kj::Promise<void> end(EndContext) override {
    ended = true;
    return writes.all().then([this]() { end_->stream->shutdownWrite(); });
  }

 private:
  kj::Own<RelayEnd> end_;
  kj::Own<proto::RestingAnswers> answers;
  proto::OrderedWrites writes;
  bool ended = false;
};

// From the toolbelt's server to the gateway. So much ahead of its answers as SinkWriter has it, so that a client that
// does not read stops it.
class RelayPump {
 public:
  RelayPump(kj::Own<RelayEnd> end, proto::ByteSink::Client to) : end(kj::mv(end)), to(kj::mv(to)) {}

  kj::Promise<void> run() {
    return end->stream->tryRead(buffer, 1, sizeof(buffer)).then([this](size_t n) -> kj::Promise<void> {
      if (n == 0) return to.end();
      return to.write(kj::arrayPtr(buffer, n)).then([this]() { return run(); });
    });
  }

 private:
  kj::Own<RelayEnd> end;
  proto::SinkWriter to;
  kj::byte buffer[16384];
};

}  // namespace

// ---- the log

NetworkLog::NetworkLog(kj::AutoCloseFd fd, uint64_t limit) : fd(kj::mv(fd)), left(limit) {}

void NetworkLog::add(proto::NetworkRecord::Reader record) {
  if (fd.get() < 0) return;
  Json entry = {{"host", bounded(record.getHost(), 253)},
                {"port", record.getPort()},
                {"allowed", record.getAllowed()},
                {"reason", bounded(record.getReason(), 64)},
                {"address", bounded(record.getAddress(), 64)},
                {"bytes_up", record.getBytesUp()},
                {"bytes_down", record.getBytesDown()},
                {"started_at", record.getStartedAt()},
                {"ended_at", record.getEndedAt()},
                {"count", record.getCount()}};
  auto line = entry.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (line.size() > left) {
    fd = nullptr;
    return;
  }
  left -= line.size();
  // A disk that is full costs the record and not the run.
  if (::write(fd.get(), line.data(), line.size()) < 0) logWarning("the network log cannot be written");
}

// ---- the channel

class GatewayChannel::Host final : public proto::GatewayHost::Server {
 public:
  explicit Host(GatewayChannel& channel) : channel(channel) {}

  kj::Promise<void> connection(ConnectionContext context) override {
    channel.take(context.getParams().getRecord());
    return kj::READY_NOW;
  }

  kj::Promise<void> toolbelt(ToolbeltContext context) override {
    auto pipe = kj::newTwoWayPipe();
    auto end = kj::refcounted<RelayEnd>(kj::mv(pipe.ends[1]));
    auto pump = kj::heap<RelayPump>(kj::addRef(*end), context.getParams().getToAgent());
    auto pumping = pump->run();
    channel.keep(pumping.attach(kj::mv(pump)));
    channel.keep(channel.serveToolbelt(kj::mv(pipe.ends[0])));
    context.getResults().setFromAgent(kj::heap<RelaySink>(kj::mv(end), kj::addRef(*channel.answers)));
    return kj::READY_NOW;
  }

 private:
  GatewayChannel& channel;
};

GatewayChannel::GatewayChannel(kj::Timer& timer, kj::Own<kj::AsyncIoStream> stream, NetworkLog log)
    : timer(timer),
      log(kj::mv(log)),
      stream(kj::mv(stream)),
      answers(kj::refcounted<proto::RestingAnswers>(timer)),
      serveToolbelt([](kj::Own<kj::AsyncIoStream>) -> kj::Promise<void> { return kj::READY_NOW; }),
      tasks(*this) {}

GatewayChannel::~GatewayChannel() noexcept(false) {}

kj::Promise<void> GatewayChannel::configure(proto::GatewayPolicy::Reader policy, ServeToolbelt serve) {
  serveToolbelt = kj::mv(serve);
  auto& link = connection.emplace(kit::framedStream(kj::mv(stream), "the gateway"), capnp::rpc::twoparty::Side::CLIENT,
                                  nullptr, gatewayLimits(), "the gateway");
  auto& client = gateway.emplace(link.bootstrapOfPeer().castAs<proto::Gateway>());
  auto request = client.configureRequest();
  request.setPolicy(policy);
  request.setHost(kj::heap<Host>(*this));
  auto configured = request.send().then([](auto&& response) {
    auto report = response.getReport();
    KJ_REQUIRE(!report.getIpForward(), "the gateway forwards packets between its networks");
    logDebug("gateway {} serves", bounded(report.getVersion(), 64));
  });
  return withDeadline(timer, configureLimit, "the gateway", kj::mv(configured));
}

void GatewayChannel::tell(EventQueue& queue) { events = &queue; }

void GatewayChannel::take(proto::NetworkRecord::Reader record) {
  log.add(record);
  bytesUp += record.getBytesUp();
  bytesDown += record.getBytesDown();
  auto count = std::max<uint32_t>(record.getCount(), 1);
  if (record.getAllowed()) {
    allowedCount += count;
    return;
  }
  deniedCount += count;
  auto what = hostAndPort(record);
  if (events == nullptr || denied.size() >= mostDenials || !denied.insert(what).second) return;
  events->addDenied("host", what, bounded(record.getReason(), 64));
}

kj::Promise<void> GatewayChannel::conclude() {
  auto quiet = waitUntilQuiet(quietTries).catch_([](kj::Exception&& e) { logDebug("{}", describe(e)); });
  return quiet.then([this]() {
    if (events != nullptr) events->addNetwork(allowedCount, deniedCount, bytesUp, bytesDown);
  });
}

// The tunnels end with the agent; what they carried is told when they have.
kj::Promise<void> GatewayChannel::waitUntilQuiet(int tries) {
  return KJ_REQUIRE_NONNULL(gateway).totalsRequest().send().then([this, tries](auto&& response) -> kj::Promise<void> {
    if (response.getTotals().getOpen() == 0 || tries == 0) return kj::READY_NOW;
    return timer.afterDelay(quietPause).then([this, tries]() { return waitUntilQuiet(tries - 1); });
  });
}

kj::Promise<void> GatewayChannel::onGone() { return KJ_REQUIRE_NONNULL(connection).onDisconnect(); }

void GatewayChannel::keep(kj::Promise<void> task) { tasks.add(kj::mv(task)); }

void GatewayChannel::taskFailed(kj::Exception&& exception) { logDebug("{}", describe(exception)); }

}  // namespace oc::run
