#include "shim.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include "base/accept.h"
#include "base/log.h"
#include "lobby.h"
#include "proto/convert.h"
#include "proto/rpc.h"

namespace oc::run {

namespace {

// A few at a time: who cannot prove the key has ten seconds.
constexpr size_t maxStrangers = 4;
constexpr size_t keySize = 32;
constexpr size_t mostId = 256;
constexpr size_t mostMessage = 1u << 20;

// One commander's hold on the run. A later one makes the earlier ones' sessions dead.
class SessionServer final : public proto::RunSession::Server {
 public:
  SessionServer(Shim& shim, uint64_t commander) : shim(shim), commander(commander) {}

  kj::Promise<void> launched(LaunchedContext) override {
    requireCurrent();
    shim.run().launched();
    return kj::READY_NOW;
  }
  kj::Promise<void> stop(StopContext context) override {
    requireCurrent();
    shim.run().stop(context.getParams().getWhy());
    return kj::READY_NOW;
  }
  kj::Promise<void> state(StateContext context) override {
    requireCurrent();
    auto results = context.getResults();
    results.setBytesOut(shim.run().log().written());
    results.setBytesDropped(shim.run().log().dropped());
    results.setRunning(!shim.run().ended());
    return kj::READY_NOW;
  }
  kj::Promise<void> finish(FinishContext) override {
    requireCurrent();
    shim.finish();
    return kj::READY_NOW;
  }
  kj::Promise<void> inject(InjectContext context) override {
    requireCurrent();
    auto params = context.getParams();
    auto id = toString(params.getId()), text = toString(params.getText());
    KJ_REQUIRE(id.size() <= mostId && text.size() <= mostMessage, "the message is too large");
    context.releaseParams();
    return shim.run().inject(id, text).then([context](Delivery delivery) mutable {
      auto results = context.getResults();
      results.setDelivered(delivery.delivered);
      results.setWhy(toText(delivery.why));
    });
  }
  kj::Promise<void> revokeToolbelt(RevokeToolbeltContext) override {
    requireCurrent();
    if (auto* toolbelt = shim.toolbelt()) toolbelt->revoke();
    return kj::READY_NOW;
  }

 private:
  void requireCurrent() { KJ_REQUIRE(commander == shim.commander(), "another daemon has taken this run over"); }
  Shim& shim;
  uint64_t commander;
};

}  // namespace

Shim::Shim(kj::AsyncIoContext& io, AgentEnds agentParam, kj::Own<kj::ConnectionReceiver> listener, kj::AutoCloseFd log,
           ShimOptions options, kj::Own<GatewayChannel> gateway)
    : io(io),
      agent(kj::mv(agentParam)),
      listener(kj::mv(listener)),
      logFd(kj::mv(log)),
      gateway(kj::mv(gateway)),
      options(kj::mv(options)),
      tasks(*this) {}

Shim::~Shim() = default;

kj::Promise<proto::RunSession::Client> Shim::begin(proto::RunSetup::Reader setup, capnp::Data::Reader keyData,
                                                   proto::RunHost::Client host, proto::Toolbelt::Client toolbelt) {
  KJ_REQUIRE(theRun == nullptr, "the run has begun already");
  KJ_REQUIRE(keyData.size() == keySize, "the run's key has 32 bytes");
  KJ_REQUIRE(setup.getConfig().size() <= 65536 && setup.getStdin().size() <= (8u << 20), "the set-up is too large");
  key = SecretBytes(toString(keyData));
  beginToolbelt(setup.getToolbelt(), kj::mv(toolbelt));
  // The gateway's channel begins before the run, which watches it.
  auto configured = gateway.get() == nullptr ? kj::Promise<void>(kj::READY_NOW) : configureGateway(setup);
  KJ_IF_MAYBE (ends, agent) {
    theRun = std::make_unique<Run>(io.provider->getTimer(), kj::mv(*ends), kj::mv(logFd), setup, channel());
    agent = nullptr;
  }
  ++commanders;
  theRun->events().attach(kj::mv(host), 0);
  tasks.add(acceptLoop());
  proto::RunSession::Client session = kj::heap<SessionServer>(*this, commanders);
  return configured.then([session = kj::mv(session)]() mutable { return kj::mv(session); });
}

kj::Maybe<GatewayChannel&> Shim::channel() {
  if (gateway.get() == nullptr) return nullptr;
  return *gateway;
}

kj::Promise<void> Shim::configureGateway(proto::RunSetup::Reader setup) {
  return gateway->configure(setup.getGatewayPolicy(), [this](kj::Own<kj::AsyncIoStream> stream) -> kj::Promise<void> {
    if (theToolbelt == nullptr) return kj::READY_NOW;
    return theToolbelt->serve(kj::mv(stream));
  });
}

void Shim::beginToolbelt(proto::ToolbeltSetup::Reader setup, proto::Toolbelt::Client daemon) {
  if (setup.getOperations().size() == 0) return;
  theToolbelt = std::make_unique<ToolbeltServer>(io.provider->getTimer(), setup, [this]() { return !theRun->ended(); });
  theToolbelt->attach(kj::mv(daemon));
  // Without a socket the connections come through the gateway.
  if (toolbeltListener.get() != nullptr) theToolbelt->listen(kj::mv(toolbeltListener));
}

proto::RunSession::Client Shim::adopt(proto::RunHost::Client host, uint64_t lastSeq, uint32_t version,
                                      proto::Toolbelt::Client toolbelt) {
  if (version != proto::PROTOCOL_VERSION) {
    auto why = fmt::format("the daemon speaks version {} of the protocol and this run {}: the run was stopped", version,
                           +proto::PROTOCOL_VERSION);
    logWarning("{}", why);
    theRun->events().addNote(why);
    theRun->stop(proto::StopReason::ORPHANED);
  }
  ++commanders;
  theRun->events().attach(kj::mv(host), lastSeq);
  if (theToolbelt) theToolbelt->attach(kj::mv(toolbelt));
  return kj::heap<SessionServer>(*this, commanders);
}

void Shim::commanderGone(uint64_t commander) {
  if (theRun == nullptr) {
    options.leave();  // it never began, and nobody else has its key
    return;
  }
  if (commander != commanders) return;
  theRun->events().detach();
  if (theToolbelt) theToolbelt->detach();
  tasks.add(orphanClock(commander));
}

kj::Promise<void> Shim::orphanClock(uint64_t since) {
  auto& timer = io.provider->getTimer();
  return timer.afterDelay(options.orphanLimit).then([this, since, &timer]() -> kj::Promise<void> {
    if (since != commanders) return kj::READY_NOW;
    logWarning("no daemon for {} s: the run is stopped", options.orphanLimit / kj::SECONDS);
    theRun->stop(proto::StopReason::ORPHANED);
    // The grace and the kill are within a minute; then there is nobody to tell.
    return timer.afterDelay(60 * kj::SECONDS).then([this, since]() {
      if (since == commanders) options.leave();
    });
  });
}

kj::Promise<void> Shim::acceptLoop() {
  return acceptForever(*listener, io.provider->getTimer(), "the run's socket",
                       [this](kj::Own<kj::AsyncIoStream> stream) {
                         if (strangers < maxStrangers) serveStranger(kj::mv(stream));
                       });
}

void Shim::serveStranger(kj::Own<kj::AsyncIoStream> stream) {
  ++strangers;
  auto lobby = kj::heap<LobbyServer>(*this);
  auto state = lobby->state();
  auto connection = kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::SERVER, kj::mv(lobby),
                                         instanceLimits(), "a daemon");
  // A daemon's answers and messages of a whole run come over this connection.
  state->adopted = [&connection = *connection]() { connection.trust(); };
  auto late = io.provider->getTimer().afterDelay(10 * kj::SECONDS).then([state]() -> kj::Promise<void> {
    if (state->commander == 0) return kj::READY_NOW;
    return kj::NEVER_DONE;
  });
  auto wrong = kj::mv(state->closed.promise);
  tasks.add(connection->onDisconnect()
                .exclusiveJoin(kj::mv(late))
                .exclusiveJoin(kj::mv(wrong))
                .attach(kj::mv(connection))
                .then([this, state]() {
                  --strangers;
                  if (state->commander != 0) commanderGone(state->commander);
                }));
}

void Shim::finish() {
  tasks.add(io.provider->getTimer().afterDelay(5 * kj::MILLISECONDS).then([this]() { options.leave(); }));
}

void Shim::taskFailed(kj::Exception&& exception) { logWarning("{}", describe(exception)); }

ShimServer::ShimServer(Shim& shim, kj::Function<void(proto::Instance::ProtectionsResults::Builder)> protections)
    : shim(shim), fillProtections(kj::mv(protections)) {}

kj::Promise<void> ShimServer::protections(ProtectionsContext context) {
  fillProtections(context.getResults());
  return kj::READY_NOW;
}

kj::Promise<void> ShimServer::begin(BeginContext context) {
  auto params = context.getParams();
  return shim.begin(params.getSetup(), params.getKey(), params.getHost(), params.getToolbelt())
      .then([context](proto::RunSession::Client session) mutable { context.getResults().setSession(kj::mv(session)); });
}

}  // namespace oc::run
