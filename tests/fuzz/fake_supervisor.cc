#include "fake_supervisor.h"

#include "daemon/supervisor/supervisor.h"
#include "docker.capnp.h"
#include "github.capnp.h"
#include "proto/shim_peer.h"
#include "run.capnp.h"
#include "toolbelt.capnp.h"

namespace oc::fuzz {

namespace {

std::vector<kj::Own<HostilePeer>> peers;
bool failing = false;

// What the daemon offers to any of its instances.
std::vector<Method> offered() {
  std::vector<Method> all = {{capnp::typeId<proto::RunHost>(), 0}, {capnp::typeId<proto::GitHubSink>(), 0}};
  for (uint16_t i = 0; i < 5; ++i) all.push_back({capnp::typeId<proto::Toolbelt>(), i});
  return all;
}

}  // namespace

std::vector<HostilePeer*> livePeers() {
  std::vector<HostilePeer*> live;
  for (auto& peer : peers) {
    if (!peer->isCutOff()) live.push_back(peer.get());
  }
  return live;
}
void forgetPeers() { peers.clear(); }
void failStarts(bool fail) { failing = fail; }

}  // namespace oc::fuzz

namespace oc::supervisor {

Instance::Instance(Supervisor& owner, std::string provider, std::string job)
    : owner(owner), providerName(kj::mv(provider)), jobText(kj::mv(job)) {
  owner.instances.insert(this);
}
Instance::~Instance() noexcept(false) {
  owner.instances.erase(this);
  connection = nullptr;
}
void Instance::kill() {}

Supervisor::Supervisor(kj::AsyncIoContext& io, std::string directory)
    : io(io), directory(kj::mv(directory)), reapers(*this) {}
std::vector<Instance*> Supervisor::live() const { return {instances.begin(), instances.end()}; }
void Supervisor::taskFailed(kj::Exception&&) {}

kj::Promise<kj::Own<Instance>> Supervisor::start(LaunchSpec spec) {
  if (fuzz::failing) return KJ_EXCEPTION(FAILED, "it did not start");
  auto instance = kj::heap<Instance>(*this, spec.provider, spec.label);
  auto pipe = io.provider->newTwoWayPipe();
  kj::Own<kj::AsyncIoStream> ours = kj::mv(pipe.ends[0]);
  if (spec.carriesCalls) ours = paced(kj::mv(ours), timer());
  instance->connection =
      kj::heap<Connection>(kj::mv(ours), capnp::rpc::twoparty::Side::CLIENT, nullptr,
                           spec.carriesCalls ? shimLimits() : instanceLimits(), "open-conduit-" + spec.provider);
  // It ends when its connection does.
  instance->ended = instance->connection->onDisconnect().then([]() { return ProcessEnd{true, false, 1}; }).fork();
  instance->outlivesUs = spec.outlivesUs;
  fuzz::peers.push_back(kj::heap<fuzz::HostilePeer>(kj::mv(pipe.ends[1]), fuzz::offered()));
  return kj::mv(instance);
}

}  // namespace oc::supervisor
