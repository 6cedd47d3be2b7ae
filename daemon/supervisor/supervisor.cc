#include "supervisor.h"

#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/procfs.h"
#include "providers/kit/handshake.h"
#include "proto/shim_peer.h"

namespace oc::supervisor {

namespace {

// Lockdown takes a few milliseconds; a machine under load has this long.
constexpr auto startLimit = 10 * kj::SECONDS;
constexpr int rpcDescriptor = 3;

int64_t now() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

// ---- Instance

Instance::Instance(Supervisor& owner, std::string provider, std::string job)
    : owner(owner), providerName(kj::mv(provider)), jobText(kj::mv(job)), startTime(now()) {
  owner.instances.insert(this);
}

Instance::~Instance() noexcept(false) {
  owner.instances.erase(this);
  connection = nullptr;
  if (!outlivesUs) kill();
  ended = nullptr;
  if (servingPidfd.get() >= 0) owner.reapLater(kj::mv(servingPidfd));
  if (spawned.pidfd.get() >= 0) owner.reapLater(kj::mv(spawned.pidfd));
}

void Instance::kill() {
  if (servingPidfd.get() >= 0) sendSignal(servingPidfd.get(), SIGKILL);
  if (spawned.pidfd.get() >= 0) sendSignal(spawned.pidfd.get(), SIGKILL);
}

// ---- Supervisor

Supervisor::Supervisor(kj::AsyncIoContext& io, std::string directory)
    : io(io), directory(kj::mv(directory)), reapers(*this) {}

std::vector<Instance*> Supervisor::live() const {
  std::vector<Instance*> result;
  for (auto* instance : instances) {
    if (instance->servingPid != 0) result.push_back(instance);
  }
  std::sort(result.begin(), result.end(), [](auto* a, auto* b) { return a->startTime < b->startTime; });
  return result;
}

SpawnSpec Supervisor::describe(const LaunchSpec& spec, int rpc) const {
  SpawnSpec result;
  result.program = directory + "/open-conduit-" + spec.provider;
  result.arguments.push_back("--instance");
  auto hidden = alwaysHidden;
  hidden.insert(hidden.end(), spec.hidden.begin(), spec.hidden.end());
  for (auto& path : hidden) result.arguments.insert(result.arguments.end(), {"--hide", path});
  for (auto& path : spec.kept) result.arguments.insert(result.arguments.end(), {"--keep", path});
  result.arguments.push_back("--");
  result.arguments.insert(result.arguments.end(), spec.job.begin(), spec.job.end());

  result.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}};
  if (const char* level = getenv("OPEN_CONDUIT_LOG")) result.environment.emplace_back("OPEN_CONDUIT_LOG", level);
#ifdef OPEN_CONDUIT_SANITIZED
  result.environment.emplace_back("ASAN_OPTIONS", "detect_leaks=0");
#endif
  auto granted = passEnv.find(spec.provider);
  if (granted != passEnv.end()) {
    for (auto& name : granted->second) {
      if (const char* value = getenv(name.c_str())) result.environment.emplace_back(name, value);
    }
  }
  result.descriptors = spec.descriptors;
  result.descriptors.emplace_back(rpc, rpcDescriptor);
  result.descriptors.emplace_back(spec.errors >= 0 ? spec.errors : STDERR_FILENO, STDERR_FILENO);
  return result;
}

kj::Promise<kj::Own<Instance>> Supervisor::start(LaunchSpec spec) {
  return kj::evalNow([&]() -> kj::Promise<kj::Own<Instance>> {
    auto instance = kj::heap<Instance>(*this, spec.provider, spec.label);
    auto pair = makeSocketPair();
    instance->spawned = spawn(describe(spec, pair.second.get()));
    pair.second = nullptr;
    auto& ref = *instance;
    auto ready = shakeHands(ref, io.lowLevelProvider->wrapSocketFd(kj::mv(pair.first)), spec.carriesCalls);
    return withDeadline(timer(), startLimit, "open-conduit-" + spec.provider, kj::mv(ready))
        .then(
            [instance = kj::mv(instance), outlivesUs = spec.outlivesUs]() mutable {
              instance->outlivesUs = outlivesUs;
              return kj::mv(instance);
            },
            // Its destructor has ended what was started: a part that did not get ready outlives nobody.
            [provider = spec.provider](kj::Exception&& exception) -> kj::Own<Instance> {
              fail(fmt::format("open-conduit-{} did not start: {}", provider, oc::describe(exception)));
            });
  });
}

kj::Promise<void> Supervisor::shakeHands(Instance& instance, kj::Own<kj::AsyncIoStream> stream, bool carriesCalls) {
  auto& streamRef = *stream;
  return readHandshake(streamRef, [this, &instance](pid_t pid) { adoptServing(instance, pid); })
      .then([this, &instance, carriesCalls, stream = kj::mv(stream)](Handshake handshake) mutable {
        if (!handshake.ready) {
          instance.kill();
          fail(handshake.failure);
        }
        verify(instance);
        if (carriesCalls) stream = paced(kj::mv(stream), timer());
        instance.connection =
            kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr,
                                 carriesCalls ? shimLimits() : instanceLimits(), "open-conduit-" + instance.provider());
        return askProtections(instance);
      });
}

// The pid is an instance's word: it counts only when the kernel says that it is our own child.
void Supervisor::adoptServing(Instance& instance, pid_t pid) {
  auto status = readProcessStatus(pid);
  KJ_REQUIRE(status.has_value() && status->parent == getpid(), "an instance named a process that is not ours", pid);
  for (auto* other : instances) {
    KJ_REQUIRE(other == &instance || (other->servingPid != pid && other->spawned.pid != pid),
               "an instance named another's process", pid);
  }
  instance.servingPid = pid;
  instance.servingPidfd = openPidfd(pid);
  if (pid != instance.spawned.pid) reapLater(kj::mv(instance.spawned.pidfd));
  instance.ended = whenEnded(io.unixEventPort, instance.servingPidfd.get()).fork();
}

void Supervisor::verify(Instance& instance) {
  auto status = readProcessStatus(instance.servingPid);
  KJ_REQUIRE(status.has_value(), "the instance ended before it was verified");
  KJ_REQUIRE(status->noNewPrivs, "the kernel says that no_new_privs is not set", instance.servingPid);
  KJ_REQUIRE(status->seccomp == 2, "the kernel says that there is no seccomp filter", instance.servingPid);
  KJ_REQUIRE(status->hasNoCapabilities(), "the kernel says that capabilities are left", status->capEff.c_str());
  instance.inForce.pidNamespace = status->nsPids.size() > 1;
}

kj::Promise<void> Supervisor::askProtections(Instance& instance) {
  auto request = instance.as<proto::Instance>().protectionsRequest();
  return request.send().then([&instance](auto&& response) {
    KJ_REQUIRE(response.getVersion() == proto::PROTOCOL_VERSION,
               "the provider is of another version than the daemon; reinstall them together");
    bool verified = instance.inForce.pidNamespace;
    instance.inForce = read(response.getProtections());
    KJ_REQUIRE(instance.inForce.pidNamespace == verified,
               "the instance says of its pid namespace something else than the kernel");
  });
}

void Supervisor::reapLater(kj::AutoCloseFd pidfd) {
  int fd = pidfd.get();
  reapers.add(whenEnded(io.unixEventPort, fd).ignoreResult().attach(kj::mv(pidfd)));
}

void Supervisor::taskFailed(kj::Exception&& exception) { logError("{}", oc::describe(exception)); }

}  // namespace oc::supervisor
