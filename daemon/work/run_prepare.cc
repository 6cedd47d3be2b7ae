// Everything before the agent: its workspace, home and secrets, what it may do, and the plan of its sandbox.
#include "run_life.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/aside.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "cgroup.h"
#include "clock.h"
#include "container_plan.h"
#include "daemon/sandbox/container.h"
#include "daemon/state/github_store.h"
#include "home.h"
#include "run_folders.h"

namespace oc::work {

using state::Outcome;
using state::RunState;

namespace {

constexpr size_t maxBody = 16u << 20;

SecretBytes hexOf(const SecretBytes& bytes) {
  auto hex = kj::encodeHex(bytes.bytes());
  KJ_DEFER(memset(hex.begin(), 0, hex.size()));
  return SecretBytes(std::string_view(hex.begin(), hex.size()));
}

// Where the request came from, for playbooks; both empty for the operator's own.
struct Origin {
  std::string author, number;
};

Origin originOf(state::Store& store, const std::string& work) {
  auto found = store.gitHub().origin(work);
  if (!found) return {};
  auto trigger = parseJson(found->trigger);
  auto author = trigger.is_object() ? trigger.value("author", std::string()) : std::string();
  return {author.empty() ? "somebody on GitHub" : "@" + author, std::to_string(found->issue)};
}

}  // namespace

kj::Promise<void> RunLife::prepare() {
  return moveTo(RunState::Preparing).then([this]() { return prepareFurther(); });
}

kj::Promise<void> RunLife::prepareFurther() {
  if (run.stopAsked) conclude(Outcome::Stopped, "stopped", "it was stopped before it began");
  if (over()) return clean();
  if (work.finishAsked && !finishAfterwards) {
    work.finishAsked = false;  // by an earlier run; somebody wanted this one all the same
    updateWork();
  }
  configCopy = deps.config();
  binding = configCopy.findBinding(work.scope + "/" + work.binding);
  if (binding == nullptr) {
    refuse({"binding_missing", fmt::format("the config has no binding {}/{} any more", work.scope, work.binding),
            "put it back, or cancel the Work"});
    return clean();
  }
  takeAhead();
  layOut();
  // All at once: none needs another. Eagerly, since a join runs nothing of its branches before all are ready.
  kj::Vector<kj::Promise<void>> steps;
  steps.add(makeWorkspace().eagerlyEvaluate(nullptr));
  steps.add(openEngine().eagerlyEvaluate(nullptr));
  steps.add(makeWorksHome().eagerlyEvaluate(nullptr));
  steps.add(lookWhetherBaseMoved().eagerlyEvaluate(nullptr));
  return kj::joinPromises(steps.releaseAsArray())
      .then([this]() { return over() ? kj::Promise<void>(kj::READY_NOW) : checkWorkspace(); })
      .then([this]() { return over() ? kj::Promise<void>(kj::READY_NOW) : fetchSecrets(); })
      .then([this]() -> kj::Promise<void> {
        if (!over()) planToolbelt();
        return over() ? kj::Promise<void>(kj::READY_NOW) : askForGit();
      })
      .then([this]() { return over() ? kj::Promise<void>(kj::READY_NOW) : freshenEngine(); })
      .then([this]() { return over() ? kj::Promise<void>(kj::READY_NOW) : planOrStartAnew(); })
      .then([this]() -> kj::Promise<void> {
        if (!over() && run.stopAsked) conclude(Outcome::Stopped, "stopped", "it was stopped before the agent started");
        if (over()) return clean();
        return startAgent();
      });
}

// The container that waits for it, if there is one. The binding may be another one by now: then the plan will differ,
// and the folders are made as for any run.
void RunLife::takeAhead() {
  auto claimed = deps.containersAhead.claim(run.id);
  KJ_IF_MAYBE (ahead, claimed) {
    engine = kj::mv((*ahead)->engine);
    engineOpenedAt = nowMs();
    aheadSha256 = (*ahead)->sha256;
    bool repository = access((deps.places.workspace(work.id) + "/.git").c_str(), F_OK) == 0;
    laidOut = binding->container && repository == binding->hasResource;
  }
}

kj::Promise<void> RunLife::dropAhead() {
  if (aheadSha256.empty() || engine.get() == nullptr) return kj::READY_NOW;
  aheadSha256.clear();
  return deps.containersAhead.removeContainer(kj::mv(engine), run.id);
}

// A container that waits is of use when it is made from just what is planned now, and is still there.
kj::Promise<void> RunLife::planOrStartAnew() {
  if (!aheadSha256.empty() && !stillWaits(*engine)) {
    logInfo("run {}: the container that was started ahead has ended", run.id);
    return startAnew();
  }
  decide();
  if (aheadSha256.empty() || over() || plan.container.planSha256 == aheadSha256) return kj::READY_NOW;
  logInfo("run {}: the container that was started ahead is not what is planned now, and goes", run.id);
  return startAnew();
}

kj::Promise<void> RunLife::startAnew() {
  return dropAhead().then([this]() { return openEngine(); }).then([this]() {
    if (!over()) decide();
  });
}

// The run's own directories, and its log, which the git provider's progress goes to first.
void RunLife::layOut() {
  auto& places = deps.places;
  unlink(places.workRemoving(work.id).c_str());       // a finish that went wrong
  if (!laidOut) removeTree(places.runFiles(run.id));  // an earlier daemon may have died while preparing
  makeRunFolders(places, run.id, binding->container.has_value());
  if (binding->container) {
    makePrivateDirectory(places.worksDir());
    makePrivateDirectory(places.workDir(work.id));
  }
  log = openFile(places.runLog(run.id), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
}

// Of a container. A seed may have a hundred thousand files, which are copied beside the loop.
kj::Promise<void> RunLife::makeWorksHome() {
  if (!binding->container) return kj::READY_NOW;
  if (!binding->homeSeed.empty()) {
    auto checked = checkSeed(configCopy, deps.places, binding->homeSeed);
    if (!checked.ok()) {
      refuse(checked.refusal());
      return kj::READY_NOW;
    }
  }
  auto made =
      aside([places = deps.places, id = work.id, seed = binding->homeSeed]() { return makeHome(places, id, seed); });
  return made.then([this](OrRefusal<Home> made) {
    if (!made.ok()) return refuse(made.refusal());
    for (auto& note : made.value().notes) addNote(note);
  });
}

kj::Promise<void> RunLife::makeWorkspace() {
  if (!work.base.empty() || (work.workspaceMade && !binding->hasResource)) return kj::READY_NOW;
  work.workspaceMade = true;  // written before it is made
  updateWork();
  makePrivateDirectory(deps.places.worksDir());
  makePrivateDirectory(deps.places.workDir(work.id));
  if (!binding->hasResource) {
    makePrivateDirectory(deps.places.workspace(work.id));  // which may be laid out
    return kj::READY_NOW;
  }
  return deps.workspaces.make(work, log.get(), laidOut).then([this](OrRefusal<Workspaces::Made> made) {
    if (!made.ok()) return refuse(made.refusal());
    workspaceIsNew = true;
    work.base = made.value().base;
    work.branch = made.value().branch;
    work.from = made.value().from;
    updateWork();
  });
}

// For a later turn, whose agent has a clone and cannot see it. A linked worktree's agent can.
kj::Promise<void> RunLife::lookWhetherBaseMoved() {
  if (work.base.empty() || work.workspaceMode != "clone") return kj::READY_NOW;
  return deps.workspaces.missing(work).then([this](uint32_t commits) { baseMovedBy = commits; });
}

// Of a container: its run's own instance of the Engine's client, which knows what the plan needs to know.
kj::Promise<void> RunLife::openEngine() {
  if (!binding->container) return dropAhead();
  auto where = deps.containers.find(configCopy, binding->container->context);
  if (!where.ok()) {
    refuse(where.refusal());
    return kj::READY_NOW;
  }
  auto& containers = deps.containers;
  kj::Promise<Refusal> opened = Refusal();
  if (engine.get() == nullptr) {
    opened = containers.engines.openFor(run.id, where.value(), binding->container->image, containers.gatewayImage())
                 .then([this](OrRefusal<kj::Own<RunEngine>> opened) {
                   if (!opened.ok()) return opened.refusal();
                   engine = kj::mv(opened.value());
                   engineOpenedAt = nowMs();
                   return Refusal();
                 });
  }
  return opened
      .then([this](Refusal refusal) -> kj::Promise<Refusal> {
        if (!refusal.reason.empty()) return refusal;
        return deps.containers.checks.require(engine->engine, engine->image, engine->gatewayImage);
      })
      .then([this](Refusal refusal) {
        if (!refusal.reason.empty()) refuse(refusal);
      });
}

// An Engine drops connections on which nothing was asked for five minutes; a large clone, or an image that is pulled,
// takes that long.
kj::Promise<void> RunLife::freshenEngine() {
  if (engine.get() == nullptr || !aheadSha256.empty() || nowMs() - engineOpenedAt < 120'000) return kj::READY_NOW;
  engine = nullptr;
  return openEngine();
}

kj::Promise<void> RunLife::checkWorkspace() {
  if (!binding->srt && !binding->container) return kj::READY_NOW;
  // A clone that was made just now shares no file with anything, and no agent has been in it.
  if (workspaceIsNew) return kj::READY_NOW;
  return deps.workspaces.scan(work).then([this](OrRefusal<std::vector<std::string>> scanned) {
    if (!scanned.ok()) refuse(scanned.refusal());
  });
}

// What the binding selects and its scope defines. The values are here until the agent is started.
kj::Promise<void> RunLife::fetchSecrets() {
  auto selected = selectSecrets(*configCopy.findScope(work.scope), *binding);
  if (!selected.ok()) {
    refuse(selected.refusal());
    return kj::READY_NOW;
  }
  return readSecrets(deps.supervisor, deps.own, selected.value()).then([this](OrRefusal<RunSecrets> read) {
    if (!read.ok()) return refuse(read.refusal());
    if (binding->container) {
      auto refusal = whyNoSecretsFile(read.value().byVariable);
      if (!refusal.reason.empty()) return refuse(refusal);
    }
    secrets = std::move(read.value());
  });
}

// What both the binding and the scope's authorization allow, and where the agent finds it.
void RunLife::planToolbelt() {
  auto& authorization = configCopy.findScope(binding->scope)->authorization;
  auto authorized = toolbelt::authorize(deps.catalogue, {binding->operations, authorization.operations});
  for (auto& text : authorized.denied) addNote(text);
  if (authorized.offered.empty()) {
    if (!binding->requires_.is_object() || !binding->requires_.contains("toolbelt")) return;
    return refuse({"toolbelt_empty", "the binding requires a toolbelt, and none of its operations can be offered",
                   "list operations, as @conduit.work, in the binding's operations and in the scope's authorization"});
  }
  if (binding->srt && !binding->srt->allUnixSockets) {
    addNote(
        "the sandbox lets its agent use no Unix socket, so it cannot reach its toolbelt: set unix_sockets to \"all\"");
  }
  auto& places = deps.places;
  toolbeltToken = SecretBytes::random(32);
  plannedToolbelt.operations = std::move(authorized.offered);
  plannedToolbelt.socket = places.runToolbelt(run.id);
  auto& token = secrets.byVariable["OPEN_CONDUIT_TOOLBELT_TOKEN"];
  token = hexOf(toolbeltToken);
  secrets.live.emplace_back(token.view());
  if (binding->container) return;  // it is mounted there, and the gateway brings the connections
  auto program = deps.supervisor.programs() + "/open-conduit-toolbelt";
  if (access(program.c_str(), X_OK) < 0) {
    addNote(
        "open-conduit-toolbelt is not installed beside the daemon: the run has to speak with its toolbelt's socket itself");
    return;
  }
  plannedToolbelt.program = program;
  plannedToolbelt.folder = places.runFiles(run.id) + "/bin";
  makePrivateDirectory(plannedToolbelt.folder);
  KJ_SYSCALL(symlink(program.c_str(), (plannedToolbelt.folder + "/open-conduit-toolbelt").c_str()));
}

// How git signs in and whom it commits as. The helper asks the run's own toolbelt, and only where that offers it.
kj::Promise<void> RunLife::askForGit() {
  if (!deps.hooks.git) return kj::READY_NOW;
  std::string helper;
  for (auto& operation : plannedToolbelt.operations) {
    if (operation.name != "github.git.credential") continue;
    auto program = binding->container ? std::string(sandbox::containerProgram) : plannedToolbelt.program;
    if (!program.empty()) helper = fmt::format("!{} git-credential", shellQuote(program));
  }
  return deps.hooks.git(work, *binding, helper).then([this](OrRefusal<Environment> given) {
    if (!given.ok()) return refuse(given.refusal());
    gitEnvironment = std::move(given.value());
  });
}

void RunLife::decide() {
  setUpTheAgent();
  if (over()) return;
  if (binding->container && aheadSha256.empty()) takeGateway();
  std::vector<std::string> variables;
  for (auto& [variable, value] : secrets.byVariable) variables.push_back(variable);
  if (binding->srt) {
    auto folders = RunCgroups().make(run.id, binding->srt->limits);
    if (!folders.ok()) return refuse(folders.refusal());
    cgroups = std::move(folders.value());
  }
  auto& containers = deps.containers;
  auto made = makePlan({configCopy, *binding, work, run, deps.places, agentSetup, variables, plannedToolbelt,
                        engine.get(), containers.engines.owner(), containers.programs(), cgroups},
                       deps.own);
  if (!made.ok()) {
    giveGatewayBack();
    return refuse(made.refusal());
  }
  plan = std::move(made.value());
  if (!aheadSha256.empty() && plan.container.planSha256 != aheadSha256) return;
  run.policyKind = binding->sandboxKind();
  run.planSha256 = plan.sha256;
  for (auto& note : plan.notes) addNote(note);
  if (deps.store.plan(run.id)) deps.store.dropPlan(run.id);  // an earlier daemon died before the run began
  deps.store.pinPlan(run.id, plan.json, plan.sha256);
  if (!plan.settingsFile.empty()) writeFileAtomically(plan.settingsFile, plan.settings, 0600);
  if (!binding->container) return;
  auto refusal = writeAgentsFiles(deps.places, run.id, plan.environment, plan.command, secrets.byVariable);
  if (refusal) refuse(*refusal);
}

// One that waits is this run's from here on. Its container has a label that names it, for a later daemon.
void RunLife::takeGateway() {
  gatewayKind = {engine->engine.socket, engine->engine.id, engine->gatewayImage.id, containerUser(engine->engine)};
  auto taken = deps.gateways.take(gatewayKind);
  KJ_IF_MAYBE (gateway, taken) {
    preparedGateway = engine->preparedGateway = gateway->name;
    engine->gatewayStream = kj::mv(gateway->stream);
  }
}

// No agent comes: nothing was said to it.
void RunLife::giveGatewayBack() {
  if (preparedGateway.empty()) return;
  deps.gateways.giveBack(gatewayKind, {preparedGateway, kj::mv(engine->gatewayStream)});
  preparedGateway.clear();
}

// Its files lie in the run's own directory, which is new and where nothing of an agent has been yet.
void RunLife::setUpTheAgent() {
  auto body = work.bodyFile.empty() ? std::string() : readFile(work.bodyFile, maxBody);
  std::string client;
  if (!plannedToolbelt.operations.empty())
    client = binding->container ? sandbox::containerProgram : plannedToolbelt.program;
  auto origin = originOf(deps.store, work.id);
  auto setup = setUpAgent({configCopy, *binding, work, run, deps.places, deps.own, body,
                           readMessages(deps.places, run.id), origin.author, origin.number, client, baseMovedBy});
  if (!setup.ok()) return refuse(setup.refusal());
  agentSetup = std::move(setup.value());
  for (auto& [name, value] : gitEnvironment) agentSetup.environment.emplace(name, value);
  for (auto& [path, content] : agentSetup.files) writeFileAtomically(path, content);
  agentSetup.files.clear();
}

}  // namespace oc::work
