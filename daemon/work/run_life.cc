#include "run_life.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/thread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "clock.h"
#include "daemon/sandbox/container.h"
#include "daemon/state/github_store.h"
#include "home.h"
#include "proto/convert.h"

namespace oc::work {

using state::Outcome;
using state::RunState;

namespace {

constexpr size_t maxNotes = 64;
constexpr size_t maxDenials = 64;
// A git instance that was killed is no reason to leave commits behind; one that dies each time is.
constexpr int mostSaves = 3;
constexpr size_t maxBody = 16u << 20;

SecretBytes hexOf(const SecretBytes& bytes) {
  auto hex = kj::encodeHex(bytes.bytes());
  KJ_DEFER(memset(hex.begin(), 0, hex.size()));
  return SecretBytes(std::string_view(hex.begin(), hex.size()));
}

bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
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

RunLife::RunLife(RunDependencies& dependencies, state::RunRow runParam)
    : deps(dependencies),
      run(std::move(runParam)),
      agentStarted(kj::mv(agentStart.promise).fork()),
      ended(kj::mv(endPair.promise).fork()) {
  auto found = deps.store.work(run.work);
  KJ_REQUIRE(found.has_value(), "a run without its Work", run.id.c_str());
  work = *found;
}

RunLife::~RunLife() noexcept(false) = default;

kj::Promise<void> RunLife::live() {
  auto steps = [this]() -> kj::Promise<void> {
    switch (run.state) {
      case RunState::Queued:
      case RunState::Preparing:
        return prepare();
      case RunState::Running:
        return takeUp();
      case RunState::Saving:
        return save();
      case RunState::Cleaning:
        return clean();
      case RunState::Ended:
        return kj::READY_NOW;
    }
    KJ_UNREACHABLE;
  };
  return kj::evalNow(steps)
      .catch_([this](kj::Exception&& exception) -> kj::Promise<void> {
        // A step of ours failed: the database's disk, a directory that cannot be made. The commits are not given up for it.
        if (agent.get() != nullptr) agent->kill();
        agent = nullptr;
        bool mayHaveCommits = run.state == RunState::Running;
        logError("run {}: {}", run.id, describe(exception));
        conclude(Outcome::Interrupted, "internal_error", describe(exception));
        return mayHaveCommits ? save() : clean();
      })
      .catch_([this](kj::Exception&& exception) {
        logError("run {} could not be ended in order: {}", run.id, describe(exception));
        conclude(Outcome::Interrupted, "internal_error", describe(exception));
      })
      .then([this]() { return finishRow(); })
      .then([this]() { endPair.fulfiller->fulfill(); });
}

// ---- preparing

kj::Promise<void> RunLife::prepare() {
  return moveTo(RunState::Preparing).then([this]() { return prepareFurther(); });
}

kj::Promise<void> RunLife::prepareFurther() {
  if (run.stopAsked) conclude(Outcome::Stopped, "stopped", "it was stopped before it began");
  if (over()) return clean();
  if (work.finishAsked && !finishAfterwards) {
    work.finishAsked = false;  // by an earlier run; somebody wanted this one all the same
    deps.store.updateWork(work);
  }
  configCopy = deps.config();
  binding = configCopy.findBinding(work.scope + "/" + work.binding);
  if (binding == nullptr) {
    refuse({"binding_missing", fmt::format("the config has no binding {}/{} any more", work.scope, work.binding),
            "put it back, or cancel the Work"});
    return clean();
  }
  layOut();
  // All at once: none needs another. Eagerly, since a join runs nothing of its branches before all are ready.
  kj::Vector<kj::Promise<void>> steps;
  steps.add(makeWorkspace().eagerlyEvaluate(nullptr));
  steps.add(openEngine().eagerlyEvaluate(nullptr));
  steps.add(makeWorksHome().eagerlyEvaluate(nullptr));
  return kj::joinPromises(steps.releaseAsArray())
      .then([this]() { return over() ? kj::Promise<void>(kj::READY_NOW) : checkWorkspace(); })
      .then([this]() { return over() ? kj::Promise<void>(kj::READY_NOW) : fetchSecrets(); })
      .then([this]() -> kj::Promise<void> {
        if (!over()) planToolbelt();
        return over() ? kj::Promise<void>(kj::READY_NOW) : askForGit();
      })
      .then([this]() { return over() ? kj::Promise<void>(kj::READY_NOW) : freshenEngine(); })
      .then([this]() -> kj::Promise<void> {
        if (!over()) decide();
        if (!over() && run.stopAsked) conclude(Outcome::Stopped, "stopped", "it was stopped before the agent started");
        if (over()) return clean();
        return startAgent();
      });
}

// The run's own directories, and its log, which the git provider's progress goes to first.
void RunLife::layOut() {
  auto& places = deps.places;
  makePrivateDirectory(places.runsDir());
  makePrivateDirectory(places.runDir(run.id));
  makePrivateDirectory(places.runPrivate(run.id));
  removeTree(places.runFiles(run.id));  // an earlier daemon may have died while preparing
  makePrivateDirectory(places.runFiles(run.id));
  makePrivateDirectory(places.runFiles(run.id) + "/tmp");
  if (binding->container) {
    makePrivateDirectory(places.runSecrets(run.id));
    makePrivateDirectory(places.worksDir());
    makePrivateDirectory(places.workDir(work.id));
  }
  log = openFile(places.runLog(run.id), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
}

// Of a container. A seed may have a hundred thousand files, which are copied beside the loop.
kj::Promise<void> RunLife::makeWorksHome() {
  if (!binding->container) return kj::READY_NOW;
  auto pair = kj::newPromiseAndCrossThreadFulfiller<OrRefusal<Home>>();
  auto thread = kj::heap<kj::Thread>([fulfiller = kj::mv(pair.fulfiller), places = deps.places, id = work.id,
                                      seed = binding->homeSeed]() mutable {
    auto failed = kj::runCatchingExceptions([&]() { fulfiller->fulfill(makeHome(places, id, seed)); });
    KJ_IF_MAYBE(exception, failed) fulfiller->reject(kj::mv(*exception));
  });
  return pair.promise.attach(kj::mv(thread)).then([this](OrRefusal<Home> made) {
    if (!made.ok()) return refuse(made.refusal());
    for (auto& note : made.value().notes) addNote(note);
  });
}

kj::Promise<void> RunLife::makeWorkspace() {
  if (!work.base.empty() || (work.workspaceMade && !binding->hasResource)) return kj::READY_NOW;
  work.workspaceMade = true;  // written before it is made
  deps.store.updateWork(work);
  makePrivateDirectory(deps.places.worksDir());
  makePrivateDirectory(deps.places.workDir(work.id));
  if (!binding->hasResource) {
    makePrivateDirectory(deps.places.workspace(work.id));
    return kj::READY_NOW;
  }
  return deps.workspaces.make(work, log.get()).then([this](OrRefusal<Workspaces::Made> made) {
    if (!made.ok()) return refuse(made.refusal());
    work.base = made.value().base;
    work.branch = made.value().branch;
    deps.store.updateWork(work);
  });
}

// Of a container: its run's own instance of the Engine's client, which knows what the plan needs to know.
kj::Promise<void> RunLife::openEngine() {
  if (!binding->container) return kj::READY_NOW;
  auto where = deps.containers.find(configCopy, binding->container->context);
  if (!where.ok()) {
    refuse(where.refusal());
    return kj::READY_NOW;
  }
  auto& containers = deps.containers;
  return containers.engines.openFor(run.id, where.value(), binding->container->image, containers.gatewayImage())
      .then([this](OrRefusal<kj::Own<RunEngine>> opened) -> kj::Promise<Refusal> {
        if (!opened.ok()) return opened.refusal();
        engine = kj::mv(opened.value());
        engineOpenedAt = nowMs();
        return deps.containers.checks.require(engine->engine, engine->image, engine->gatewayImage);
      })
      .then([this](Refusal refusal) {
        if (!refusal.reason.empty()) refuse(refusal);
      });
}

// An Engine drops connections on which nothing was asked for five minutes; a large clone, or an image that is pulled, takes
// that long.
kj::Promise<void> RunLife::freshenEngine() {
  if (engine.get() == nullptr || nowMs() - engineOpenedAt < 120'000) return kj::READY_NOW;
  engine = nullptr;
  return openEngine();
}

kj::Promise<void> RunLife::checkWorkspace() {
  if (!binding->srt && !binding->container) return kj::READY_NOW;
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
    addNote("the sandbox lets its agent use no Unix socket, so it cannot reach its toolbelt: set unix_sockets to \"all\"");
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
    addNote("open-conduit-toolbelt is not installed beside the daemon: the run has to speak with its toolbelt's socket itself");
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
  std::vector<std::string> variables;
  for (auto& [variable, value] : secrets.byVariable) variables.push_back(variable);
  auto& containers = deps.containers;
  auto made = makePlan({configCopy, *binding, work, run, deps.places, agentSetup, variables, plannedToolbelt, engine.get(),
                        containers.engines.owner(), containers.programs()},
                       deps.own);
  if (!made.ok()) return refuse(made.refusal());
  plan = std::move(made.value());
  run.policyKind = binding->sandboxKind();
  run.planSha256 = plan.sha256;
  for (auto& note : plan.notes) addNote(note);
  if (!deps.store.plan(run.id)) deps.store.pinPlan(run.id, plan.json, plan.sha256);
  if (!plan.settingsFile.empty()) writeFileAtomically(plan.settingsFile, plan.settings, 0600);
  if (!plan.secretsFile.empty()) writeSecretsFile(plan.secretsFile, secrets.byVariable);
}

// Its files lie in the run's own directory, which is new and where nothing of an agent has been yet.
void RunLife::setUpTheAgent() {
  auto body = work.bodyFile.empty() ? std::string() : readFile(work.bodyFile, maxBody);
  std::string client;
  if (!plannedToolbelt.operations.empty()) client = binding->container ? sandbox::containerProgram : plannedToolbelt.program;
  auto origin = originOf(deps.store, work.id);
  auto setup = setUpAgent({configCopy, *binding, work, run, deps.places, deps.own, body, readMessages(deps.places, run.id),
                           origin.author, origin.number, client});
  if (!setup.ok()) return refuse(setup.refusal());
  agentSetup = std::move(setup.value());
  for (auto& [name, value] : gitEnvironment) agentSetup.environment.emplace(name, value);
  for (auto& [path, content] : agentSetup.files) writeFileAtomically(path, content);
  agentSetup.files.clear();
}

// ---- running

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
        if (!plan.secretsFile.empty()) unlink(plan.secretsFile.c_str());  // its entry point has read it, and deletes it too
        if (run.stopAsked) agent->stop(proto::StopReason::ASKED);
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
  return Agent::startContainer(deps.supervisor, kj::mv(engine), kj::mv(plan.container), agentSpec(), key, *this, kj::mv(onPids));
}

// After a restart of the daemon: the run goes on with the plan that was pinned, or it ends.
kj::Promise<void> RunLife::takeUp() {
  auto key = deps.store.runKey(run.id);
  std::string policyTrouble;
  bool holds = pinnedPolicyHolds(policyTrouble);
  log = openFile(deps.places.runLog(run.id), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (!key) {
    conclude(Outcome::Interrupted, "interrupted", "the daemon ended before the agent started");
    return save();
  }
  auto why = kj::heap<std::string>();
  auto& whyRef = *why;
  // Its operations are those of the pinned plan, whatever today's config says.
  offerToolbelt(pinnedOperations());
  auto adopted = Agent::adopt(deps.supervisor.context(), deps.places.runSocket(run.id), *key, run.lastSeq, *this, whyRef,
                              toolbelt->capability());
  // `why` lives in the continuation: what is attached to a promise is gone when its continuation runs.
  return adopted.then(
      [this, holds, policyTrouble, why = kj::mv(why)](kj::Maybe<kj::Own<Agent>> taken) -> kj::Promise<void> {
        KJ_IF_MAYBE(found, taken) {
          agent = kj::mv(*found);
          if (run.policyKind != "none") plan.startedMarker = deps.places.runFiles(run.id) + "/.started";
          if (run.policyKind == "docker") checkContainer();
          logInfo("run {} was taken up again", run.id);
          if (!holds) {
            addNote("the pinned policy does not hold any more, the run is stopped: " + policyTrouble);
            agent->stop(proto::StopReason::FAILED);
          }
          agentIsThere();
          if (run.stopAsked) agent->stop(proto::StopReason::ASKED);
          return kj::mv(agentEnd.promise).then([this]() { return save(); });
        }
        conclude(Outcome::Interrupted, "interrupted",
                 "the daemon was restarted and the run's shim was not there any more: " + *why);
        return save();
      });
}

// None where the plan cannot be read: then nothing is offered.
std::vector<std::string> RunLife::pinnedOperations() {
  try {
    auto json = deps.store.plan(run.id);
    if (json) return parseJson(*json).at("toolbelt").at("operations").get<std::vector<std::string>>();
  } catch (const kj::Exception& exception) {
    logWarning("run {}: its plan: {}", run.id, describe(exception));
  } catch (const std::exception& exception) {
    logWarning("run {}: its plan names no operations: {}", run.id, exception.what());
  }
  return {};
}

// ---- the toolbelt

void RunLife::offerToolbelt(const std::vector<std::string>& operations) {
  toolbelt::WorkAccess& access = *this;
  toolbelt = kj::heap<toolbelt::RunToolbelt>(toolbelt::Shared{deps.store, deps.owners, deps.callQueue}, access, operations);
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
  deps.store.updateWork(work);
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

// The Engine is asked whether the container is the one that was planned. Meanwhile it goes on, as it did without a daemon.
void RunLife::checkContainer() {
  auto json = deps.store.plan(run.id);
  if (!json) return;
  auto document = parseJson(*json);
  auto why = kj::heap<std::string>();
  auto& whyRef = *why;
  auto found = deps.containers.engines.find(document.at("sandbox").at("engine").at("socket"), run.id, whyRef);
  checkingContainer = found
                          .then([this, document, why = kj::mv(why)](kj::Maybe<Engines::Found> container) {
                            KJ_IF_MAYBE(it, container) {
                              pinnedContainerHolds(document, *it);
                            } else {
                              addNote("whether the container is the planned one could not be checked: " + *why);
                            }
                          })
                          .eagerlyEvaluate([](kj::Exception&& e) { logError("{}", describe(e)); });
}

void RunLife::pinnedContainerHolds(const Json& document, const Engines::Found& found) {
  std::string trouble;
  if (found.planSha256 != run.planSha256) trouble = "its label names another plan";
  if (found.image != document.at("sandbox").at("image").at("id")) trouble = "it was made from another image";
  if (trouble.empty() || agent.get() == nullptr) return;
  addNote("the pinned policy does not hold any more, the run is stopped: " + trouble);
  agent->stop(proto::StopReason::FAILED);
}

void RunLife::agentIsThere() { agentStart.fulfiller->fulfill(); }

kj::Promise<Injected> RunLife::inject(std::string id, std::string text) {
  bool ending = over() || run.stopAsked || run.state == RunState::Saving || run.state == RunState::Cleaning;
  if (ending) return Injected{false, "the run is ending"};
  auto given = [this, id, text]() -> kj::Promise<Injected> {
    if (agent.get() == nullptr || over()) return Injected{false, "the run ended before its agent could be told"};
    return agent->inject(id, text).then([this, id](Injected injected) {
      if (!injected.delivered) return injected;
      auto messages = readMessages(deps.places, run.id);
      messages.injected.push_back(id);
      writeMessages(deps.places, run.id, messages);
      return injected;
    });
  };
  // Who asked may wait longer than this run is there.
  return injections.wrap(agentStarted.addBranch().exclusiveJoin(ended.addBranch()).then(kj::mv(given)))
      .catch_([](kj::Exception&&) { return Injected{false, "the run has ended"}; });
}

void RunLife::stop(proto::StopReason why) {
  if (run.state == RunState::Saving) return hurrySave();
  if (over()) return;
  run.stopAsked = true;
  tryPersist();  // stopping does not wait for a disk
  if (agent.get() != nullptr) agent->stop(why);
}

// ---- what the shim tells: in the database when these return

template <typename Change>
kj::Promise<void> RunLife::noteOnce(uint64_t seq, Change&& change) {
  if (seq <= run.lastSeq) return kj::READY_NOW;
  run.lastSeq = seq;
  change();
  return persist();
}

kj::Promise<void> RunLife::onNote(uint64_t seq, const std::string& text) {
  return noteOnce(seq, [&]() { addNote(text); });
}

kj::Promise<void> RunLife::onSession(uint64_t seq, const std::string& session) {
  return noteOnce(seq, [&]() {
    run.session = session;
    work.session = session;
    deps.store.updateWork(work);
  });
}

kj::Promise<void> RunLife::onUsage(uint64_t seq, const state::Usage& usage) {
  return noteOnce(seq, [&]() { run.usage = usage; });
}

kj::Promise<void> RunLife::onNetwork(uint64_t seq, const state::NetworkTotals& totals) {
  return noteOnce(seq, [&]() { run.network = totals; });
}

kj::Promise<void> RunLife::onDenied(uint64_t seq, const state::Denial& denial) {
  return noteOnce(seq, [&]() {
    if (run.denied.size() < maxDenials) run.denied.push_back(denial);
  });
}

kj::Promise<void> RunLife::onEnded(uint64_t seq, const AgentEnd& end) {
  if (seq <= run.lastSeq || over()) return kj::READY_NOW;
  run.lastSeq = seq;
  endToolbelt();
  judge(end);
  return moveTo(RunState::Saving).then([this]() { agentEnd.fulfiller->fulfill(); });
}

// What the executor says goes before the exit status, unless something of ours stopped the run.
void RunLife::judgeByExecutor(const AgentEnd& end) {
  if (end.reason == "done") return conclude(Outcome::Succeeded, "", "");
  conclude(Outcome::Failed, end.reason, end.detail);
  if (end.reason != "session_lost") return;
  work.session.clear();
  deps.store.updateWork(work);
}

void RunLife::judge(const AgentEnd& end) {
  auto& process = end.process;
  if (process.known && !process.signaled && end.stopped == proto::StopReason::NONE) run.exitCode = process.code;
  // The agent can remove its mark; it then says of itself that it never ran.
  bool neverStarted = !plan.startedMarker.empty() && !isThere(plan.startedMarker);
  switch (end.stopped) {
    case proto::StopReason::EXECUTOR:
      judgeByExecutor(end);
      if (!over()) conclude(Outcome::Failed, "agent_error", "its executor ended it");
      break;
    case proto::StopReason::NONE:
      if (!end.reason.empty() && !neverStarted) return judgeByExecutor(end);
      if (neverStarted && process.known && (process.signaled || process.code != 0)) {
        refuse({"sandbox_unavailable",
                fmt::format("the sandbox ended before it started the job ({} {}); its own words are in the run's log. it "
                            "may also give up on a machine that is too busy",
                            process.signaled ? "signal" : "exit status", process.code),
                fmt::format("open-conduit runs logs {}; open-conduit doctor", run.id)});
      } else if (!process.known) {
        conclude(Outcome::Interrupted, "interrupted", end.detail.empty() ? "nobody knows how it ended" : end.detail);
      } else if (process.signaled) {
        conclude(Outcome::Failed, "signal", fmt::format("the job was killed by signal {}", process.code));
      } else if (process.code != 0) {
        conclude(Outcome::Failed, "exit_status", fmt::format("the job ended with exit status {}", process.code));
      } else {
        conclude(Outcome::Succeeded, "", "");
      }
      break;
    case proto::StopReason::ASKED:
      conclude(Outcome::Stopped, "stopped", "it was stopped on request");
      break;
    case proto::StopReason::DRAIN:
      conclude(Outcome::Stopped, "drained", "it was stopped since the daemon is being drained");
      break;
    case proto::StopReason::TIMEOUT:
      conclude(Outcome::Failed, "timeout", "it ran longer than the binding's timeout");
      break;
    case proto::StopReason::STALLED:
      conclude(Outcome::Failed, "stalled", "it printed nothing for the binding's stall_timeout");
      break;
    case proto::StopReason::ORPHANED:
      conclude(Outcome::Interrupted, "orphaned", "it was without a daemon that it could talk to, for too long");
      break;
    case proto::StopReason::FAILED:
      conclude(Outcome::Interrupted, "provider_failed", end.detail);
      break;
  }
}

void RunLife::onLost(const std::string& why) {
  if (over()) return;
  conclude(Outcome::Interrupted, "provider_failed", why);
  endToolbelt();
  agent->kill();
  agentEnd.fulfiller->fulfill();
}

// ---- afterwards

kj::Promise<void> RunLife::save() {
  return moveTo(RunState::Saving).then([this]() { return saveCommits(); });
}

kj::Promise<void> RunLife::saveCommits() {
  if (work.checkout.empty() || work.base.empty()) return clean();
  if (log.get() < 0) log = openFile(deps.places.runLog(run.id), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  auto given = kj::newPromiseAndFulfiller<OrRefusal<Workspaces::Saved>>();
  giveUpSave = kj::mv(given.fulfiller);
  auto saving = deps.workspaces.save(work, run.id, log.get()).exclusiveJoin(kj::mv(given.promise));
  return saving.then([this](OrRefusal<Workspaces::Saved> saved) {
    if (!saved.ok()) {
      bool providerDied = saved.refusal().reason == "workspace_failed";
      if (providerDied && ++savesThatDied < mostSaves) return saveCommits();
      noteUnsaved(saved.refusal());
    } else if (!saved.value().tip.empty()) {
      auto& result = saved.value();
      work.savedTip = result.tip;
      work.savedAs = result.savedAs;
      run.savedAs = result.savedAs;
      run.commits = result.commits;
      if (result.savedAs != work.branch) {
        addNote(fmt::format("the branch {} was moved or is checked out in the checkout: the commits are kept as {}",
                            work.branch, result.savedAs));
      }
      deps.store.updateWork(work);
    }
    return clean();
  });
}

// What an agent made of its repository may take for ever to read. A stop waits for it as long as for an agent, and then the
// commits stay in the workspace.
void RunLife::hurrySave() {
  if (giveUpSave.get() == nullptr || hurrying) return;
  hurrying = true;
  hurry = deps.supervisor.timer()
              .afterDelay(deps.config().settings.graceSeconds * kj::SECONDS)
              .then([this]() {
                giveUpSave->fulfill(Refusal{"save_stopped", "it was stopped while they were being saved", ""});
              })
              .eagerlyEvaluate(nullptr);
}

// A script that waits for success and takes the branch must not take it for saved.
void RunLife::noteUnsaved(const Refusal& refusal) {
  auto text = fmt::format("the commits could not be saved to the checkout ({}); they are in the workspace, and are saved "
                          "when the Work is finished",
                          refusal.what);
  addNote(text);
  if (run.outcome != Outcome::Succeeded) return;
  run.outcome = Outcome::Failed;
  run.reason = "save_failed";
  run.message = "the job succeeded, but " + text;
  run.fix = fmt::format("{}{}then: open-conduit work finish {}", refusal.fix, refusal.fix.empty() ? "" : "; ", run.work);
}

kj::Promise<void> RunLife::clean() {
  secrets.byVariable.clear();
  return moveTo(RunState::Cleaning)
      .then([this]() { return findShim(); })
      .then([this]() -> kj::Promise<void> {
        if (agent.get() == nullptr) return kj::READY_NOW;
        return agent->finish(deps.supervisor.timer());
      })
      .then([this]() { return removeContainers(); })
      .then([this]() { removeLeftovers(); });
}

// An earlier daemon may have died between learning the end and telling the shim that it may go: it would wait for ten minutes.
kj::Promise<void> RunLife::findShim() {
  if (agent.get() != nullptr) return kj::READY_NOW;
  auto key = deps.store.runKey(run.id);
  if (!key) return kj::READY_NOW;
  auto why = kj::heap<std::string>();
  auto& whyRef = *why;
  auto adopted = Agent::adopt(deps.supervisor.context(), deps.places.runSocket(run.id), *key, run.lastSeq, *this, whyRef, nullptr);
  return adopted.then([this, why = kj::mv(why)](kj::Maybe<kj::Own<Agent>> taken) {
    KJ_IF_MAYBE(found, taken) {
      agent = kj::mv(*found);
    } else {
      logDebug("run {}: no shim is left: {}", run.id, *why);
    }
  });
}

// Whatever there is of the run on the Engine that its plan names; a run without a plan has made nothing there.
kj::Promise<void> RunLife::removeContainers() {
  engine = nullptr;
  if (run.policyKind != "docker") return kj::READY_NOW;
  auto json = deps.store.plan(run.id);
  if (!json) return kj::READY_NOW;
  std::string socket = parseJson(*json).at("sandbox").at("engine").at("socket");
  return deps.containers.engines.remove(socket, run.id).then([this, socket](std::vector<std::string> left) {
    for (auto& what : left) {
      addNote("left on the Docker Engine, and tried again later: " + what);
      deps.onLeftover(socket, run.id, what);
    }
  });
}

void RunLife::removeLeftovers() {
  endToolbelt();
  agent = nullptr;
  log = nullptr;
  auto& places = deps.places;
  deps.store.dropRunKey(run.id);
  unlink(places.runSocket(run.id).c_str());
  unlink(places.runToolbelt(run.id).c_str());
  unlink(places.runSettings(run.id).c_str());
  removeTree(places.runSecrets(run.id));
  removeTree(places.runFiles(run.id));
}

kj::Promise<void> RunLife::finishRow() {
  if (run.outcome == Outcome::None) run.outcome = Outcome::Interrupted;
  run.endedAt = nowMs();
  deps.ending(run);
  return moveTo(RunState::Ended);
}

// ---- the row

void RunLife::refuse(const Refusal& refusal) {
  if (over()) return;
  conclude(Outcome::Refused, refusal.reason, refusal.what);
  run.fix = withoutSecrets(refusal.fix);
}

// The first outcome stays.
void RunLife::conclude(Outcome outcome, const std::string& reason, const std::string& message) {
  if (over()) return;
  run.outcome = outcome;
  run.reason = reason;
  run.message = withoutSecrets(message);
}

kj::Promise<void> RunLife::moveTo(RunState state) {
  run.state = state;
  return persist().then([this]() {
    if (deps.hooks.onState) deps.hooks.onState(work, run);
  });
}

// A full disk is often the agent's own doing and passes; what is true stays in memory, and with the shim, until then.
kj::Promise<void> RunLife::persist() {
  if (tryPersist()) return kj::READY_NOW;
  return deps.supervisor.timer().afterDelay(2 * kj::SECONDS).then([this]() { return persist(); });
}

bool RunLife::tryPersist() {
  std::string trouble;
  try {
    deps.store.updateRun(run);
    return true;
  } catch (const kj::Exception& exception) {
    trouble = describe(exception);
  } catch (const std::exception& exception) {
    trouble = exception.what();
  }
  logError("run {}: the database cannot be written, and is tried again: {}", run.id, trouble);
  return false;
}

void RunLife::addNote(const std::string& text) {
  if (run.notes.size() < maxNotes) run.notes.push_back(withoutSecrets(text));
}

}  // namespace oc::work
