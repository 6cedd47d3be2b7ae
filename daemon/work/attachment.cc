#include "attachment.h"

#include <dirent.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "agent_parts.h"
#include "base/descriptor_passing.h"
#include "base/crypto.h"
#include "base/aside.h"
#include "base/fd.h"
#include "base/log.h"
#include "git_redirection.h"
#include "proto/rpc.h"

namespace oc::work {

namespace {

constexpr const char* idPrefix = "a-";
// Who asked for the terminal takes it at once.
constexpr auto takeLimit = 30 * kj::SECONDS;
// Of a container whose daemon has gone. The person's end went with the daemon, so there is nothing to wait for.
constexpr uint64_t orphanSeconds = 1, graceSeconds = 2;
constexpr uint64_t logLimit = 64u << 10;

using Step = kj::Promise<Refusal>;

template <typename Next>
Step unlessRefused(Step step, Next next) {
  return step.then([next = kj::mv(next)](Refusal refusal) mutable -> Step {
    if (!refusal.reason.empty()) return kj::mv(refusal);
    return next();
  });
}

bool isOurs(int socket) {
  struct ucred peer = {};
  socklen_t length = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace

Attachment::Attachment(RunDependencies& dependencies, state::WorkRow workParam, PinnedContainer pinnedParam,
                       control::TerminalFacts terminalParam)
    : deps(dependencies),
      id(newId(idPrefix)),
      work(std::move(workParam)),
      pinned(std::move(pinnedParam)),
      facts(std::move(terminalParam)),
      config(dependencies.config()),
      readyBranches(kj::mv(readyPair.promise).fork()),
      goneBranches(kj::mv(gonePair.promise).fork()) {}

// With a daemon that ends, its shim ends the container.
Attachment::~Attachment() noexcept(false) = default;

kj::Promise<void> Attachment::live() {
  return kj::evalNow([this]() { return prepare(); })
      .catch_([](kj::Exception&& exception) -> Refusal {
        return {"sandbox_unavailable", describe(exception), "open-conduit doctor says what this machine lacks"};
      })
      .then([this](Refusal refusal) -> kj::Promise<void> {
        secrets.byVariable.clear();
        bool refused = !refusal.reason.empty();
        readyPair.fulfiller->fulfill(kj::mv(refusal));
        if (refused) return kj::READY_NOW;
        giving = giveTerminal().eagerlyEvaluate([](kj::Exception&& e) { logWarning("a terminal: {}", describe(e)); });
        return kj::mv(over.promise);
      })
      .then([this]() { return remove(); })
      .catch_([this](kj::Exception&& exception) { logError("attachment {}: {}", id, describe(exception)); })
      .then([this]() {
        auto result = outcome;
        gonePair.fulfiller->fulfill(kj::mv(result));
      });
}

void Attachment::end() { over.fulfiller->fulfill(); }

// ---- making

kj::Promise<Refusal> Attachment::prepare() {
  binding = config.findBinding(work.scope + "/" + work.binding);
  if (binding == nullptr) {
    return Refusal{"binding_missing", fmt::format("the config has no binding {}/{} any more", work.scope, work.binding),
                   "put it back, or cancel the Work"};
  }
  layOut();
  auto step = unlessRefused(openEngine(), [this]() { return checkWorkspace(); });
  step = unlessRefused(kj::mv(step), [this]() { return fetchSecrets(); });
  return unlessRefused(kj::mv(step), [this]() { return start(); });
}

void Attachment::layOut() {
  auto& places = deps.places;
  for (auto& path : {places.runsDir(), places.runDir(id), places.runPrivate(id), places.runFiles(id),
                     places.runFiles(id) + "/tmp", places.runSecrets(id)}) {
    makePrivateDirectory(path);
  }
}

kj::Promise<Refusal> Attachment::openEngine() {
  EngineFacts where;
  where.socket = pinned.engineSocket();
  where.context = pinned.engineContext();
  auto& containers = deps.containers;
  return containers.engines.openFor(id, where, pinned.image(), containers.gatewayImage())
      .then([this](OrRefusal<kj::Own<RunEngine>> opened) -> Step {
        if (!opened.ok()) return opened.refusal();
        engine = kj::mv(opened.value());
        if (engine->image.id != pinned.imageId()) {
          return Refusal{"sandbox_unavailable", "the image is not the one that the Work ran in",
                         "let a run of the Work begin"};
        }
        return deps.containers.checks.require(engine->engine, engine->image, engine->gatewayImage);
      });
}

kj::Promise<Refusal> Attachment::checkWorkspace() {
  return deps.workspaces.scan(work).then(
      [](OrRefusal<std::vector<std::string>> scanned) { return scanned.ok() ? Refusal() : scanned.refusal(); });
}

// Those that the Work ran with, and that it would get today.
kj::Promise<Refusal> Attachment::fetchSecrets() {
  auto selected = selectSecrets(*config.findScope(work.scope), *binding);
  if (!selected.ok()) return selected.refusal();
  auto variables = pinned.secretVariables();
  std::vector<SelectedSecret> wanted;
  for (auto& secret : selected.value()) {
    if (std::find(variables.begin(), variables.end(), secret.variable) != variables.end()) wanted.push_back(secret);
  }
  return readSecrets(deps.supervisor, deps.own, wanted).then([this](OrRefusal<RunSecrets> read) {
    if (!read.ok()) return read.refusal();
    secrets = std::move(read.value());
    return whyNoSecretsFile(secrets.byVariable);
  });
}

AgentSpec Attachment::agentSpec() const {
  AgentSpec spec;
  spec.run = id;
  spec.socket = deps.places.runSocket(id);
  spec.log = deps.places.runLog(id);
  spec.networkLog = deps.places.runNetworkLog(id);
  spec.logLimit = logLimit;
  spec.graceSeconds = graceSeconds;
  spec.orphanSeconds = orphanSeconds;
  return spec;
}

// The shim has the gateway, the container's end and the means to end it; the terminal goes to the person, past it.
kj::Promise<Refusal> Attachment::start() {
  std::vector<std::string> variables;
  for (auto& [variable, value] : secrets.byVariable) variables.push_back(variable);
  auto& containers = deps.containers;
  auto plan = makeAttachPlan({pinned, *binding, work, id, deps.places, containers.programs(),
                              containers.engines.owner(), *engine, facts, variables},
                             deps.own);
  if (!plan.ok()) return plan.refusal();
  for (auto& [path, content] : plan.value().files) writeFileAtomically(path, content);
  if (!variables.empty()) writeSecretsFile(deps.places.runSecrets(id) + "/secrets", secrets.byVariable);
  auto pair = makeSocketPair();
  terminal = kj::mv(engine->agentStream);
  engine->agentStream = kj::mv(pair.second);
  silence = kj::mv(pair.first);
  KJ_SYSCALL(shutdown(silence.get(), SHUT_WR));
  mayHaveContainers = true;
  auto key = SecretBytes::random(32);
  auto started = Agent::startContainer(deps.supervisor, kj::mv(engine), kj::mv(plan.value().container), agentSpec(),
                                       key, *this, [](pid_t, pid_t) {});
  return started.then([this](OrRefusal<kj::Own<Agent>> result) {
    if (!result.ok()) return result.refusal();
    agent = kj::mv(result.value());
    return Refusal();
  });
}

// ---- the terminal

std::string Attachment::terminalSocket() const { return deps.places.runtimeDir + "/" + id + ".sock"; }

kj::Promise<void> Attachment::giveTerminal() {
  auto path = terminalSocket();
  requireSocketPathFits(path);
  auto listener = deps.supervisor.context().lowLevelProvider->wrapListenSocketFd(listenAt(path));
  auto& ref = *listener;
  auto given = ref.accept().then([this](kj::Own<kj::AsyncIoStream> taker) { give(*taker); });
  auto late = deps.supervisor.timer().afterDelay(takeLimit).then([this]() { end(); });
  return given.exclusiveJoin(kj::mv(late)).attach(kj::mv(listener), kj::defer([path]() { unlink(path.c_str()); }));
}

// Ours is closed: the stream ends when the person's end does.
void Attachment::give(kj::AsyncIoStream& taker) {
  int fd = KJ_REQUIRE_NONNULL(taker.getFd());
  bool given = isOurs(fd) && sendDescriptor(fd, terminal.get());
  terminal = nullptr;
  if (!given) end();
}

void Attachment::resize(control::TerminalSize size) {
  if (agent.get() != nullptr && size.columns != 0 && size.rows != 0) agent->resize(size.columns, size.rows);
}

// ---- its end

kj::Promise<void> Attachment::onNote(uint64_t, const std::string& text) {
  logInfo("attachment {} to Work {}: {}", id, work.id, text);
  return kj::READY_NOW;
}

kj::Promise<void> Attachment::onEnded(uint64_t, const AgentEnd& ended) {
  outcome = ended.process;
  if (!ended.detail.empty()) logWarning("attachment {} to Work {}: {}", id, work.id, ended.detail);
  end();
  return kj::READY_NOW;
}

void Attachment::onLost(const std::string& why) {
  logWarning("attachment {} to Work {}: {}", id, work.id, why);
  end();
}

kj::Promise<void> Attachment::remove() {
  if (agent.get() != nullptr) agent->kill();
  agent = nullptr;
  engine = nullptr;
  terminal = nullptr;
  giving = nullptr;
  auto removed = mayHaveContainers ? deps.containers.engines.remove(pinned.engineSocket(), id)
                                   : kj::Promise<std::vector<std::string>>(std::vector<std::string>());
  return removed.then([this](std::vector<std::string> left) {
    removeGitRedirection(deps.places.workspace(work.id));
    for (auto& what : left) deps.onLeftover(pinned.engineSocket(), id, what);
    return aside([folder = deps.places.runDir(id)]() { removeTree(folder); });
  });
}

void Attachment::removeLeftovers(const Places& places) {
  DIR* directory = opendir(places.runsDir().c_str());
  if (directory == nullptr) return;
  KJ_DEFER(closedir(directory));
  while (auto* entry = readdir(directory)) {
    std::string name = entry->d_name;
    if (name.starts_with(idPrefix)) removeTree(places.runDir(name));
  }
}

}  // namespace oc::work
