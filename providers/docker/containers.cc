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
    : connections(connections),
      spec(kj::mv(spec)),
      context(kj::mv(context)),
      cleaner(timer, connections.first, connections.second, this->context) {}

Step Containers::make() {
  auto checked = connections.first.version().then([](Answer answer) { return refuseVersion(answer); });
  auto made = inOrder(
      both(kj::mv(checked), requireLimits()), [this]() { return removeEarlier(); },
      [this]() { return spec.network ? both(makeVolume(), requireEgress(1)) : done(); },
      [this]() {
        auto agentMade = makeContainer(connections.first, agentContainer(spec), spec.role, agent);
        if (!spec.network) return agentMade;
        return both(kj::mv(agentMade), makeContainer(connections.second, gatewayContainer(spec), "gateway", gateway));
      },
      [this]() { return both(attach(connections.agent, agent, context), beginWaiting()); },
      [this]() { return spec.network ? attach(*connections.gateway, gateway, context) : done(); });
  return made.then([this](std::optional<Refusal> refusal) { return refusal ? undo(kj::mv(*refusal)) : done(); },
                   [this](kj::Exception&& exception) { return undo(engineGone(exception)); });
}

// An engine without cgroups of its own (a rootless one under cgroup v1) takes each limit without a word, and keeps
// none.
Step Containers::requireLimits() {
  if (spec.unlimited) return done();
  return connections.second.get("/info").then([this](Answer answer) -> std::optional<Refusal> {
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
  return cleaner.removeRun(spec.owner, spec.run)
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

Step Containers::makeVolume() {
  return connections.first.post("/volumes/create", gatewayVolume(spec))
      .then([this](Answer answer) -> std::optional<Refusal> {
        if (!answer.good()) return refusalOf(answer, "make the run's volume", context);
        return std::nullopt;
      });
}

// Looks first: it is there but for the first run.
Step Containers::requireEgress(int attempt) {
  return connections.second.get("/networks/" + egressName(spec.owner)).then([this, attempt](Answer answer) -> Step {
    if (answer.good()) return refuseEgress(answer.body, spec.owner);
    if (answer.status != 404 || attempt == 3)
      return std::optional<Refusal>(refusalOf(answer, "make the gateways' network", context));
    return inOrder(makeEgress(), [this, attempt]() { return requireEgress(attempt + 1); });
  });
}

Step Containers::makeEgress() {
  return connections.second.post("/networks/create", egressNetwork(spec.owner))
      .then([this](Answer answer) -> std::optional<Refusal> {
        // 409: another run has made it in between.
        if (answer.good() || answer.status == 409) return std::nullopt;
        return refusalOf(answer, "make the gateways' network", context);
      });
}

Step Containers::makeContainer(Engine& engine, const Json& body, const std::string& role, std::string& id) {
  auto path = "/containers/create?name=" + containerName(spec.owner, spec.run, role);
  return engine.post(path, body).then([this, role, &id](Answer answer) -> std::optional<Refusal> {
    auto doing = role == "gateway" ? "make the gateway's container" : "make the run's container";
    if (!answer.good()) return refusalOf(answer, doing, context);
    auto told = textField(answer.body, "Id");
    if (!isContainerId(told)) return malformedAnswer("a container's id");
    id = told;
    // What was asked for and left out, such as a limit that this engine cannot keep.
    for (auto& warning : textsField(answer.body, "Warnings")) {
      return Refusal{
          "sandbox_unavailable", fmt::format("the engine would make the container otherwise than asked: {}", warning),
          "let the engine do it (limits need cgroups that it may use), or take the limit out of the binding"};
    }
    return std::nullopt;
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

Step Containers::start(Engine& engine, const std::string& id, const std::string& doing) {
  return engine.post(fmt::format("/containers/{}/start", id))
      .then([this, doing](Answer answer) -> std::optional<Refusal> {
        if (!answer.good()) return refusalOf(answer, doing, context);
        return std::nullopt;
      });
}

Step Containers::startGateway() {
  if (!spec.network) return done();
  return start(connections.second, gateway, "start the gateway");
}

Step Containers::startAgent() { return start(connections.first, agent, "start the container"); }

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
    if (gateway.empty()) return kj::READY_NOW;
    return connections.second.post(fmt::format("/containers/{}/kill?signal=KILL", gateway)).ignoreResult();
  });
}

kj::Promise<OrRefusal<Removed>> Containers::remove() { return cleaner.removeRun(spec.owner, spec.run); }

}  // namespace oc::docker
