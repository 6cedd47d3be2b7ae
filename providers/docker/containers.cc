#include "containers.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include "attach.h"
#include "json_fields.h"
#include "names.h"
#include "proto/rpc.h"
#include "refusals.h"

namespace oc::docker {

Containers::Containers(kj::Timer& timer, Connections connections, RunSpec spec, std::string context)
    : timer(timer),
      connections(connections),
      spec(kj::mv(spec)),
      context(kj::mv(context)),
      cleaner(timer, connections.first, connections.second, this->context),
      gateway(connections.first, connections.second, gatewayOf(this->spec), this->context) {}

Step Containers::make() {
  auto checked = connections.first.version().then([](Answer answer) { return refuseVersion(answer); });
  auto made = inOrder(
      both(kj::mv(checked), requireLimits()), [this]() { return removeEarlier(); }, [this]() { return makePlaces(); },
      [this]() { return makeContainers(); },
      [this]() { return both(attach(connections.agent, agent, context), beginWaiting()); },
      [this]() { return attachGateway(); });
  return made.then([this](std::optional<Refusal> refusal) { return refusal ? undo(kj::mv(*refusal)) : done(); },
                   [this](kj::Exception&& exception) { return undo(engineGone(exception)); });
}

Step Containers::makePlaces() { return makesGateway() ? gateway.makePlaces() : done(); }

Step Containers::makeContainers() {
  if (!spec.network) return makeAgent();
  return both(makeAgent(), makesGateway() ? gateway.make() : gateway.findPrepared());
}

// One that was made ahead is attached to already, by the stream that the daemon has.
Step Containers::attachGateway() { return makesGateway() ? gateway.attachTo(*connections.gateway) : done(); }

Making Containers::makingAgent() const {
  return {containerName(spec.owner, spec.run, spec.role), "the run's container", context};
}

Step Containers::makeAgent() { return createContainer(connections.first, agentContainer(spec), makingAgent(), agent); }

// An engine without cgroups of its own (a rootless one under cgroup v1) takes each limit without a word, and keeps
// none.
Step Containers::requireLimits() {
  if (spec.unlimited) return done();
  return connections.first.info().then([this](Answer answer) -> std::optional<Refusal> {
    if (!answer.good()) return refusalOf(answer, "tell of itself", context);
    std::string missing;
    auto need = [&](bool asked, const char* name, const char* field) {
      if (asked && !boolField(answer.body, field)) missing += (missing.empty() ? "" : ", ") + std::string(name);
    };
    need(true, "processes", "PidsLimit");
    need(spec.memoryBytes != 0 || spec.network, "memory", "MemoryLimit");
    need(spec.memoryBytes != 0 || spec.network, "swap", "SwapLimit");
    need(spec.nanoCpus != 0, "cpus", "CpuCfsQuota");
    if (missing.empty()) return std::nullopt;
    return Refusal{
        "sandbox_unavailable", fmt::format("the engine cannot keep a limit of: {}", missing),
        "let it use cgroups: for a rootless engine, boot with cgroup v2 and delegate the controllers to your user (for swap "
        "under cgroup v1: the kernel parameter swapaccount=1)"};
  });
}

Step Containers::undo(Refusal refusal) {
  return cleaner.removeRun(spec.owner, spec.run, spec.preparedGateway)
      .then([refusal](OrRefusal<Removed>) { return std::optional<Refusal>(refusal); },
            [refusal](kj::Exception&&) { return std::optional<Refusal>(refusal); });  // later, by its labels
}

Step Containers::removeEarlier() {
  return cleaner.removeRun(spec.owner, spec.run).then([](OrRefusal<Removed> removed) -> std::optional<Refusal> {
    if (!removed) return removed.refusal();
    if (removed.value().left.empty()) return std::nullopt;
    return Refusal{
        "container_running",
        fmt::format("a container of an earlier attempt of this run cannot be removed: {}", removed.value().left[0]),
        "stop the run, and see what the engine says of the container: docker inspect"};
  });
}

// Before the start, so that no end can be missed.
Step Containers::beginWaiting() {
  if (connections.waiting == nullptr) return done();
  return connections.waiting->postAndWait(fmt::format("/containers/{}/wait?condition=next-exit", agent))
      .then([this](WaitingAnswer taken) {
        waiting = kj::mv(taken.answer);
        return std::optional<Refusal>();
      });
}

Step Containers::startGateway() { return makesGateway() ? gateway.start() : done(); }

Step Containers::startAgent() { return startContainer(connections.first, agent, makingAgent()); }

kj::Promise<ProcessEnd> Containers::agentEnd() {
  auto answer = kj::mv(KJ_REQUIRE_NONNULL(waiting, "nobody waits for the agent's end"));
  return answer.then([](Answer answer) -> ProcessEnd {
    auto& error = objectField(answer.body, "Error");
    if (!answer.good() || !answer.body.is_object() || !textField(error, "Message").empty()) return {};
    auto code = numberField(answer.body, "StatusCode");
    constexpr int lastSignal = 64;
    if (code > 128 && code <= 128 + lastSignal) return {true, true, static_cast<int>(code - 128)};
    return {true, false, static_cast<int>(code & 0xFF)};
  });
}

kj::Promise<void> Containers::signalAgent(const std::string& name) {
  // 404 and 409: it is gone, or does not run.
  return connections.second.post(fmt::format("/containers/{}/kill?signal={}", agent, name)).then([](Answer answer) {
    if (!answer.good() && answer.status != 404 && answer.status != 409) {
      KJ_FAIL_REQUIRE("the engine could not signal the container", answer.message.c_str());
    }
  });
}

Step Containers::resize(unsigned columns, unsigned rows) {
  auto path = fmt::format("/containers/{}/resize?h={}&w={}", agent, rows, columns);
  return connections.second.post(path).then([this](Answer answer) -> std::optional<Refusal> {
    // 404 and 409: it is gone, or does not run.
    if (answer.good() || answer.status == 404 || answer.status == 409) return std::nullopt;
    return refusalOf(answer, "resize the container's terminal", context);
  });
}

kj::Promise<void> Containers::kill() {
  auto killed = agent.empty() ? kj::Promise<void>(kj::READY_NOW) : signalAgent("KILL");
  return killed.then([this]() -> kj::Promise<void> {
    if (gateway.id().empty()) return kj::READY_NOW;
    return connections.second.post(fmt::format("/containers/{}/kill?signal=KILL", gateway.id())).ignoreResult();
  });
}

kj::Promise<OrRefusal<Removed>> Containers::remove() {
  return cleaner.removeRun(spec.owner, spec.run, spec.preparedGateway);
}

}  // namespace oc::docker
