// Who may command the shim: the daemon that spawned it, and later ones that prove the run's key.
#pragma once

#include <kj/async-io.h>

#include <memory>

#include "base/crypto.h"
#include "run.h"
#include "toolbelt/server.h"

namespace oc::run {

struct ShimOptions {
  kj::Duration orphanLimit = 10 * kj::MINUTES;  // without a daemon, before the run is stopped
  kj::Function<void()> leave;                   // ends the process; called after the last answer
};

class Shim final : private kj::TaskSet::ErrorHandler {
 public:
  Shim(kj::AsyncIoContext& io, AgentEnds agent, kj::Own<kj::ConnectionReceiver> listener, kj::AutoCloseFd log,
       ShimOptions options, kj::Own<GatewayChannel> gateway = {});
  ~Shim();

  // Where the run's agent will find its toolbelt. Before `begin`.
  void toolbeltAt(kj::Own<kj::ConnectionReceiver> listener) { toolbeltListener = kj::mv(listener); }

  // The run begins, commanded by `host`. Once. Resolves when the container's gateway, where there is one, has its
  // policy.
  kj::Promise<proto::RunSession::Client> begin(proto::RunSetup::Reader setup, capnp::Data::Reader key,
                                               proto::RunHost::Client host, proto::Toolbelt::Client toolbelt);

  // The commander's connection closed: if no other has taken over, the orphan's clock starts.
  void commanderGone(uint64_t commander);
  uint64_t commander() const { return commanders; }

  // After both sides have proved the key.
  proto::RunSession::Client adopt(proto::RunHost::Client host, uint64_t lastSeq, uint32_t version,
                                  proto::Toolbelt::Client toolbelt);
  const SecretBytes& runKey() const { return key; }

  Run& run() { return *theRun; }
  // Null for a run without one, and before `begin`.
  ToolbeltServer* toolbelt() { return theToolbelt.get(); }
  // The daemon has everything: leaves when its answer is on its way.
  void finish();

 private:
  kj::Maybe<GatewayChannel&> channel();
  kj::Promise<void> configureGateway(proto::RunSetup::Reader setup);
  void beginToolbelt(proto::ToolbeltSetup::Reader setup, proto::Toolbelt::Client daemon);
  kj::Promise<void> acceptLoop();
  void serveStranger(kj::Own<kj::AsyncIoStream> stream);
  kj::Promise<void> orphanClock(uint64_t since);
  void taskFailed(kj::Exception&& exception) override;

  kj::AsyncIoContext& io;
  kj::Maybe<AgentEnds> agent;
  kj::Own<kj::ConnectionReceiver> listener;
  kj::AutoCloseFd logFd;
  kj::Own<GatewayChannel> gateway;  // of a container
  ShimOptions options;
  SecretBytes key;
  std::unique_ptr<Run> theRun;
  kj::Own<kj::ConnectionReceiver> toolbeltListener;
  std::unique_ptr<ToolbeltServer> theToolbelt;
  uint64_t commanders = 0;  // each daemon that took over gets the next number
  size_t strangers = 0;     // open connections to the run's socket
  kj::TaskSet tasks;
};

// What descriptor 3 serves.
class ShimServer final : public proto::Shim::Server {
 public:
  ShimServer(Shim& shim, kj::Function<void(proto::Instance::ProtectionsResults::Builder)> protections);
  kj::Promise<void> protections(ProtectionsContext context) override;
  kj::Promise<void> begin(BeginContext context) override;

 private:
  Shim& shim;
  kj::Function<void(proto::Instance::ProtectionsResults::Builder)> fillProtections;
};

}  // namespace oc::run
