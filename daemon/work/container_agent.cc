// The start of an agent in a container: the Engine's client makes it, the shim has its streams and its gateway.
#include <fcntl.h>
#include <kj/debug.h>

#include "agent_parts.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine.h"
#include "proto/convert.h"

namespace oc::work {

namespace {

// Creating and starting two containers takes a second, a loaded machine some more.
constexpr auto createLimit = 120 * kj::SECONDS;

struct ContainerStarting {
  kj::Own<RunEngine> engine;
  ContainerSpec container;
  AgentSpec spec;
  kj::AutoCloseFd listener, log, networkLog;

  ContainerStarting(kj::Own<RunEngine> engineParam, ContainerSpec containerParam, AgentSpec specParam)
      : engine(kj::mv(engineParam)),
        container(kj::mv(containerParam)),
        spec(kj::mv(specParam)),
        listener(listenAt(spec.socket)),
        log(openFile(spec.log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600)),
        networkLog(openFile(spec.networkLog, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600)) {}

  supervisor::LaunchSpec shimSpec() {
    supervisor::LaunchSpec result;
    result.provider = "run";
    result.label = "run " + spec.run;
    result.job = {"--container", "--gateway", "--network-log"};
    if (spec.orphanSeconds != 0)
      result.job.insert(result.job.end(), {"--orphan-seconds", std::to_string(spec.orphanSeconds)});
    result.descriptors = {{engine->process.get(), 4},
                          {engine->agentStream.get(), 5},
                          {engine->gatewayStream.get(), 6},
                          {listener.get(), 8},
                          {log.get(), 9},
                          {networkLog.get(), 11}};
    result.job.insert(result.job.end(), {"--file-limit", std::to_string(shimFileLimit(spec))});
    result.carriesCalls = true;
    result.outlivesUs = true;
    return result;
  }

  // The instances have theirs. A stream that we kept would never end.
  void closeOurs() {
    for (auto* fd : {&engine->process, &engine->agentStream, &engine->gatewayStream, &listener, &log, &networkLog}) {
      *fd = nullptr;
    }
  }

  proto::Docker::Client docker() { return engine->instance->as<proto::Docker>(); }

  kj::Promise<Refusal> create(kj::Timer& timer) {
    if (engine->containerStarted) return Refusal();
    auto request = docker().createRequest();
    fill(request.initSpec(), container);
    auto made = request.send().then([](auto&& response) { return read(response.getRefusal()); });
    return withDeadline(timer, createLimit, "open-conduit-docker", kj::mv(made));
  }

  kj::Promise<Refusal> start(proto::Docker::Client docker, kj::Timer& timer) {
    if (engine->containerStarted) return Refusal();
    auto started = docker.startRequest().send().then([](auto&& response) { return read(response.getRefusal()); });
    return withDeadline(timer, createLimit, "open-conduit-docker", kj::mv(started));
  }
};

}  // namespace

// The container is made while the shim starts; the agent starts while its gateway gets its policy, which it waits for.
kj::Promise<OrRefusal<kj::Own<Agent>>> Agent::startContainer(supervisor::Supervisor& supervisor,
                                                             kj::Own<RunEngine> engine, ContainerSpec container,
                                                             AgentSpec spec, const SecretBytes& key,
                                                             AgentListener& listener,
                                                             kj::Function<void(pid_t, pid_t)> onPids) {
  return kj::evalNow([&]() -> kj::Promise<OrRefusal<kj::Own<Agent>>> {
    auto& timer = supervisor.timer();
    auto starting = kj::heap<ContainerStarting>(kj::mv(engine), kj::mv(container), kj::mv(spec));
    auto agent = kj::heap<Agent>(listener);
    auto& ref = *starting;
    auto& agentRef = *agent;
    auto shim = supervisor.start(ref.shimSpec()).then([&agentRef](kj::Own<supervisor::Instance> instance) {
      agentRef.shim = kj::mv(instance);
    });
    kj::Vector<kj::Promise<void>> both;
    auto refusal = kj::heap<Refusal>();
    auto& refusalRef = *refusal;
    both.add(shim.eagerlyEvaluate(nullptr));
    both.add(
        ref.create(timer).then([&refusalRef](Refusal made) { refusalRef = kj::mv(made); }).eagerlyEvaluate(nullptr));
    auto launched =
        kj::joinPromises(both.releaseAsArray())
            .then([&timer, &ref, &agentRef, &refusalRef, key = key.clone(),
                   onPids = kj::mv(onPids)]() mutable -> kj::Promise<void> {
              if (!refusalRef.reason.empty()) return kj::READY_NOW;
              agentRef.parent = kj::mv(ref.engine->instance);
              onPids(agentRef.shim->pid(), agentRef.parent->pid());
              ref.closeOurs();
              auto begin = agentRef.shim->as<proto::Shim>().beginRequest();
              auto setup = begin.initSetup();
              fillSetup(setup, ref.spec);
              fill(setup.initGatewayPolicy(), ref.container.settings, !ref.spec.operations.empty());
              begin.setKey(toData(key.view()));
              begin.setHost(hostFor(kj::addRef(*agentRef.door), timer));
              KJ_IF_MAYBE (toolbelt, ref.spec.toolbelt) {
                begin.setToolbelt(*toolbelt);
              }
              auto session =
                  begin.send().then([&agentRef](auto&& response) { agentRef.session = response.getSession(); });
              auto start = ref.start(agentRef.parent->as<proto::Docker>(), timer).then([&refusalRef](Refusal refusal) {
                refusalRef = kj::mv(refusal);
              });
              kj::Vector<kj::Promise<void>> steps;
              steps.add(withDeadline(timer, createLimit, "the run's shim", kj::mv(session)).eagerlyEvaluate(nullptr));
              steps.add(start.eagerlyEvaluate(nullptr));
              return kj::joinPromises(steps.releaseAsArray());
            })
            .then([&timer, &agentRef, &refusalRef]() -> kj::Promise<void> {
              if (!refusalRef.reason.empty()) return kj::READY_NOW;
              auto told = KJ_REQUIRE_NONNULL(agentRef.session).launchedRequest().send().ignoreResult();
              return withDeadline(timer, agentCallLimit, "the run's shim", kj::mv(told));
            });
    return launched.then([starting = kj::mv(starting), agent = kj::mv(agent),
                          refusal = kj::mv(refusal)]() mutable -> OrRefusal<kj::Own<Agent>> {
      if (!refusal->reason.empty()) {
        agent->kill();
        return *refusal;
      }
      agent->watchShim(agent->shim->onDisconnect());
      return kj::mv(agent);
    });
  });
}

kj::Maybe<proto::Docker::Client> Agent::docker() {
  if (parent.get() == nullptr || parent->provider() != "docker") return nullptr;
  return parent->as<proto::Docker>();
}

void Agent::resize(uint16_t columns, uint16_t rows) {
  if (parent.get() == nullptr) return;
  auto request = parent->as<proto::Docker>().resizeRequest();
  request.setColumns(columns);
  request.setRows(rows);
  request.send().ignoreResult().detach([](kj::Exception&& e) { logDebug("{}", describe(e)); });
}

}  // namespace oc::work
