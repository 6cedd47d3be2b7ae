// The agent while it is there: started or, after a restart of the daemon, taken up again; and its toolbelt.
#include "run_life.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "clock.h"
#include "container_plan.h"

namespace oc::work {

using state::Outcome;
using state::RunState;

AgentSpec RunLife::agentSpec() {
  AgentSpec spec;
  spec.run = run.id;
  spec.provider = plan.provider;
  spec.job = plan.job;
  spec.hidden = plan.hidden;
  spec.kept = plan.kept;
  spec.command = plan.command;
  spec.environment.assign(plan.environment.begin(), plan.environment.end());
  spec.directory = plan.directory;
  spec.socket = deps.places.runSocket(run.id);
  spec.log = deps.places.runLog(run.id);
  spec.networkLog = deps.places.runNetworkLog(run.id);
  spec.executor = binding->executor;
  spec.executorConfig = agentSetup.executorConfig;
  spec.brief = agentSetup.brief;
  if (!plannedToolbelt.operations.empty()) {
    std::vector<std::string> names;
    for (auto& operation : plannedToolbelt.operations) names.push_back(operation.name);
    offerToolbelt(names);
    spec.operations = plannedToolbelt.operations;
    if (!binding->container) spec.toolbeltSocket = plannedToolbelt.socket;
    spec.toolbeltToken = kj::mv(toolbeltToken);
    spec.toolbelt = toolbelt->capability();
  }
  spec.logLimit = configCopy.settings.logMaxBytes;
  spec.timeoutSeconds = binding->timeoutSeconds;
  spec.stallSeconds = binding->stallSeconds;
  spec.graceSeconds = configCopy.settings.graceSeconds;
  return spec;
}

kj::Promise<void> RunLife::startAgent() {
  auto key = SecretBytes::random(32);
  deps.store.setRunKey(run.id, key);
  run.startedAt = nowMs();
  return moveTo(RunState::Running).then([this, key = kj::mv(key)]() mutable { return launchAgent(kj::mv(key)); });
}

kj::Promise<void> RunLife::launchAgent(SecretBytes key) {
  auto started = startParts(key);
  plan.environment.clear();
  secrets.byVariable.clear();  // the values are with the agent now
  agentSetup.brief.clear();
  return started.then(
      [this](OrRefusal<kj::Own<Agent>> result) -> kj::Promise<void> {
        if (!result.ok()) {
          refuse(result.refusal());
          return clean();
        }
        agent = kj::mv(result.value());
        agentIsThere();
        if (run.policyKind == "docker") prepareNext();
        if (run.stopAsked) stop(proto::StopReason::ASKED);
        return kj::mv(agentEnd.promise).then([this]() { return save(); });
      },
      [this](kj::Exception&& exception) -> kj::Promise<void> {
        refuse({"sandbox_unavailable", describe(exception), "open-conduit doctor says what this machine lacks"});
        return clean();
      });
}

kj::Promise<OrRefusal<kj::Own<Agent>>> RunLife::startParts(const SecretBytes& key) {
  auto onPids = [this](pid_t shim, pid_t parent) {
    run.shimPid = shim;
    run.sandboxPid = parent;
    tryPersist();
  };
  if (plan.provider != "docker") {
    auto spec = agentSpec();
    spec.secrets = std::move(secrets.byVariable);
    return Agent::start(deps.supervisor, std::move(spec), key, *this, kj::mv(onPids));
  }
  aheadSha256.clear();
  return Agent::startContainer(deps.supervisor, kj::mv(engine), kj::mv(plan.container), agentSpec(), key, *this,
                               kj::mv(onPids));
}

void RunLife::prepareNext() {
  deps.gateways.replenish(gatewayKind);
  deps.containersAhead.replenish(work.scope + "/" + work.binding);
}

// After a restart of the daemon: the run goes on with the plan that was pinned, or it ends.
kj::Promise<void> RunLife::takeUp() {
  auto key = deps.store.runKey(run.id);
  std::string trouble;
  bool holds = pinnedPolicyHolds(trouble);
  log = openFile(deps.places.runLog(run.id), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (!key) {
    conclude(Outcome::Interrupted, "interrupted", "the daemon ended before the agent started");
    return save();
  }
  auto why = kj::heap<std::string>();
  auto& whyRef = *why;
  // Its operations are those of the pinned plan, whatever today's config says.
  offerToolbelt(pinnedOperations());
  auto adopted = Agent::adopt(deps.supervisor.context(), deps.places.runSocket(run.id), *key, run.lastSeq, *this,
                              whyRef, toolbelt->capability());
  // `why` lives in the continuation: what is attached to a promise is gone when its continuation runs.
  return adopted.then([this, holds, trouble, why = kj::mv(why)](kj::Maybe<kj::Own<Agent>> taken) -> kj::Promise<void> {
    KJ_IF_MAYBE (found, taken) {
      agent = kj::mv(*found);
      if (run.policyKind != "none") plan.startedMarker = deps.places.runFiles(run.id) + "/.started";
      if (run.policyKind == "docker") checkContainer();
      logInfo("run {} was taken up again", run.id);
      if (!holds) stopForPolicy(trouble);
      agentIsThere();
      if (run.stopAsked) stop(proto::StopReason::ASKED);
      return kj::mv(agentEnd.promise).then([this]() { return save(); });
    }
    conclude(Outcome::Interrupted, "interrupted",
             "the daemon was restarted and the run's shim was not there any more: " + *why);
    return save();
  });
}

// Nothing where there is none, or where it is not the one that was pinned: the log says so.
std::optional<Json> RunLife::pinnedPlan() {
  try {
    auto json = deps.store.plan(run.id);
    if (json) return parseJson(*json);
  } catch (const kj::Exception& exception) {
    logWarning("run {}: its plan: {}", run.id, describe(exception));
  }
  return std::nullopt;
}

// None where the plan cannot be read: then nothing is offered.
std::vector<std::string> RunLife::pinnedOperations() {
  auto plan = pinnedPlan();
  if (!plan) return {};
  try {
    return plan->at("toolbelt").at("operations").get<std::vector<std::string>>();
  } catch (const std::exception& exception) {
    logWarning("run {}: its plan names no operations: {}", run.id, exception.what());
  }
  return {};
}

// ---- the toolbelt

void RunLife::offerToolbelt(const std::vector<std::string>& operations) {
  toolbelt::WorkAccess& access = *this;
  toolbelt =
      kj::heap<toolbelt::RunToolbelt>(toolbelt::Shared{deps.store, deps.owners, deps.callQueue}, access, operations);
}

// The first thing when the agent has ended: nothing that it left behind can call any more.
void RunLife::endToolbelt() {
  if (agent.get() != nullptr) agent->revokeToolbelt();
  if (toolbelt.get() != nullptr) toolbelt->revoke();
}

void RunLife::addWorkNote(const std::string& text) { deps.store.addNote(work.id, {run.id, nowMs(), text}); }

void RunLife::askFinish() {
  if (work.finishAsked) return;
  work.finishAsked = true;
  updateWork();
}

// The settings that the sandbox was started with are still those of the plan, and the plan is still the one that was
// pinned.
bool RunLife::pinnedPolicyHolds(std::string& why) {
  try {
    auto json = deps.store.plan(run.id);
    if (!json) {
      why = "there is no plan in the history";
      return false;
    }
    auto document = parseJson(*json);
    if (run.policyKind != "srt") return true;
    auto settings = readFile(deps.places.runSettings(run.id), 4u << 20);
    if (settings == canonicalJson(document.at("sandbox").at("settings"))) return true;
    why = "the sandbox's settings file was changed";
  } catch (const kj::Exception& exception) {
    why = describe(exception);
  } catch (const std::exception& exception) {
    why = exception.what();
  }
  return false;
}

// The Engine is asked whether the container is the one that was planned. Meanwhile it goes on, as it did without a
// daemon.
void RunLife::checkContainer() {
  auto pinned = pinnedPlan();
  if (!pinned) return;
  auto& document = *pinned;
  auto why = kj::heap<std::string>();
  auto& whyRef = *why;
  auto found = deps.containers.engines.find(document.at("sandbox").at("engine").at("socket"), run.id, whyRef);
  checkingContainer = found
                          .then([this, document, why = kj::mv(why)](kj::Maybe<Engines::Found> container) {
                            KJ_IF_MAYBE (it, container) {
                              pinnedContainerHolds(document, *it);
                            } else {
                              addNote("whether the container is the planned one could not be checked: " + *why);
                            }
                          })
                          .eagerlyEvaluate([](kj::Exception&& e) { logError("{}", describe(e)); });
}

void RunLife::pinnedContainerHolds(const Json& document, const Engines::Found& found) {
  std::string trouble;
  if (found.planSha256 != containerHash(document.at("sandbox"))) trouble = "its label names another plan";
  if (found.image != document.at("sandbox").at("image").at("id").get<std::string>())
    trouble = "it was made from another image";
  if (trouble.empty() || agent.get() == nullptr) return;
  stopForPolicy(trouble);
}

// The outcome is known when the agent has ended.
void RunLife::stopForPolicy(const std::string& trouble) {
  policyTrouble = trouble;
  agent->stop(proto::StopReason::FAILED);
  insistOnEnd();
}

}  // namespace oc::work
