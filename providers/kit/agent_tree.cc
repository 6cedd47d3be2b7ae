#include "agent_tree.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace oc::kit {

namespace {

AgentCommand readCommand(proto::Sandbox::LaunchParams::Reader params) {
  AgentCommand command;
  for (auto word : params.getCommand()) command.command.push_back(toString(word));
  for (auto variable : params.getEnvironment()) {
    command.environment.emplace_back(toString(variable.getName()), toString(variable.getValue()));
  }
  command.directory = toString(params.getDirectory());
  return command;
}

std::optional<Refusal> refuseMalformed(const AgentCommand& command) {
  auto malformed = [](const std::string& what) { return Refusal{"sandbox_denied", what, ""}; };
  if (command.command.empty() || command.command[0].empty()) return malformed("there is no command");
  if (!command.directory.starts_with('/')) return malformed("the agent's directory is no absolute path");
  auto hasNul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  for (auto& word : command.command) {
    if (hasNul(word)) return malformed("a word of the command has a NUL byte");
  }
  for (auto& [name, value] : command.environment) {
    if (name.empty() || name.find('=') != std::string::npos || hasNul(name) || hasNul(value)) {
      return malformed("a variable of the environment has no proper name or value");
    }
  }
  return std::nullopt;
}

// The life of one tree, shared by both of its faces.
class AgentLife final : public kj::Refcounted, private kj::TaskSet::ErrorHandler {
 public:
  AgentLife(Context& context, kj::Own<AgentTree> tree) : tree(kj::mv(tree)), tasks(*this) {
    tasks.add(kj::mv(context.onDaemonGone).then([this]() {
      if (!launched) _exit(0);
    }));
  }

  std::optional<Refusal> launch(const AgentCommand& command) {
    KJ_REQUIRE(!launched, "an instance launches once");
    if (stopped) return Refusal{"sandbox_unavailable", "the run was stopped before its agent was started", ""};
    if (auto refusal = refuseMalformed(command)) return refusal;
    if (auto refusal = tree->start(command)) return refusal;
    launched = true;
    gone = tree->ended()
               .then([this](ProcessEnd end) {
                 return tree->kill().then([this, end]() {
                   tree->cleanUp();
                   cleaned = true;
                   return end;
                 });
               })
               .fork();
    tasks.add(gone.addBranch().ignoreResult());
    started.fulfiller->fulfill();
    return std::nullopt;
  }

  kj::Promise<ProcessEnd> wait() {
    return startedBranches.addBranch().then([this]() { return gone.addBranch(); });
  }

  kj::Promise<std::vector<Denial>> denialsAfter(size_t seen) {
    auto list = tree->denials();
    if (list == nullptr) return std::vector<Denial>();
    return list->whenMoreThan(seen).exclusiveJoin(wait().ignoreResult()).then([list, seen]() {
      auto& all = list->all();
      return std::vector<Denial>(all.begin() + std::min(seen, all.size()), all.end());
    });
  }

  kj::Promise<void> signal(int number) {
    KJ_REQUIRE(number == SIGTERM || number == SIGKILL, "only SIGTERM and SIGKILL can be sent to an agent", number);
    stopped = true;
    if (!launched) return kj::READY_NOW;
    if (number == SIGKILL) return tree->kill().then([this]() { return gone.addBranch().ignoreResult(); });
    tree->terminate();
    return kj::READY_NOW;
  }

  void shimGone() {
    if (!launched) _exit(0);
    stopped = true;
    tasks.add(tree->kill().then([this]() {
      if (!cleaned) tree->cleanUp();
      _exit(0);
    }));
  }

  kj::Promise<std::vector<Check>> check() {
    KJ_REQUIRE(!launched, "an instance that runs an agent checks nothing: the check's end would be the agent's");
    return tree->check();
  }

 private:
  void taskFailed(kj::Exception&& exception) override {
    logError("{}", describe(exception));
    _exit(1);  // with us goes the tree, or whoever waits learns of it by the connection's end
  }

  kj::Own<AgentTree> tree;
  bool launched = false, stopped = false, cleaned = false;
  kj::PromiseFulfillerPair<void> started = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> startedBranches = started.promise.fork();
  kj::ForkedPromise<ProcessEnd> gone = nullptr;
  kj::TaskSet tasks;
};

class ProcessServer final : public proto::Process::Server {
 public:
  explicit ProcessServer(kj::Own<AgentLife> life) : life(kj::mv(life)) {}

  kj::Promise<void> signal(SignalContext context) override { return life->signal(context.getParams().getNumber()); }

  kj::Promise<void> wait(WaitContext context) override {
    return life->wait().then([context](ProcessEnd end) mutable { write(context.getResults().initStatus(), end); });
  }

  kj::Promise<void> denials(DenialsContext context) override {
    return life->denialsAfter(context.getParams().getSeen()).then([context](std::vector<Denial> denials) mutable {
      auto list = context.getResults().initDenials(denials.size());
      for (size_t i = 0; i < denials.size(); ++i) {
        list[i].setKind(toText(denials[i].kind));
        list[i].setWhat(toText(denials[i].what));
        list[i].setWhy(toText(denials[i].why));
      }
    });
  }

 private:
  kj::Own<AgentLife> life;
};

class SandboxServer final : public proto::Sandbox::Server {
 public:
  SandboxServer(Context& context, kj::Own<AgentLife> life, bool hasShim)
      : context(context), life(kj::mv(life)), hasShim(hasShim) {}

  kj::Promise<void> protections(ProtectionsContext call) override {
    answerProtections(context, call.getResults());
    return kj::READY_NOW;
  }

  kj::Promise<void> launch(LaunchContext call) override {
    KJ_REQUIRE(hasShim, "this instance has no shim (descriptors 4 to 7): it only checks");
    auto refusal = life->launch(readCommand(call.getParams()));
    auto results = call.getResults();
    if (refusal) write(results.initRefusal(), *refusal);
    results.setStarted(!refusal);
    return kj::READY_NOW;
  }

  kj::Promise<void> check(CheckContext call) override {
    return life->check().then([call](std::vector<Check> checks) mutable {
      auto list = call.getResults().initReport().initChecks(checks.size());
      for (size_t i = 0; i < checks.size(); ++i) {
        list[i].setName(toText(checks[i].name));
        list[i].setOk(checks[i].ok);
        list[i].setWhat(toText(checks[i].what));
        list[i].setFix(toText(checks[i].ok ? "" : checks[i].fix));
        list[i].setWanted(checks[i].wanted);
      }
    });
  }

 private:
  Context& context;
  kj::Own<AgentLife> life;
  bool hasShim;
};

// The connection to the shim, for as long as this process lives: the daemon's may be gone long before.
struct Shim {
  Shim(Context& context, AgentLife& life)
      // The shim reads the agent's bytes: it is bounded like a stranger.
      : connection(context.io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(shimDescriptor)),
                   capnp::rpc::twoparty::Side::SERVER, kj::heap<ProcessServer>(kj::addRef(life)), instanceLimits(),
                   "the shim"),
        gone(connection.onDisconnect().then([&life]() { life.shimGone(); }).eagerlyEvaluate(nullptr)) {}

  Connection connection;
  kj::Promise<void> gone;
};

}  // namespace

bool hasAgentDescriptors() {
  for (int fd : {shimDescriptor, agentInput, agentOutput, agentErrors}) {
    if (fcntl(fd, F_GETFD) < 0) return false;
  }
  return true;
}

capnp::Capability::Client serveAgentTree(Context& context, kj::Own<AgentTree> tree, bool withShim) {
  // From a terminal these reach us as well; the shim is who stops the agent.
  for (int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM}) ::signal(number, SIG_IGN);
  auto life = kj::refcounted<AgentLife>(context, kj::mv(tree));
  if (withShim) {
    static auto* shim = new Shim(context, *life);  // never deleted: the process ends by _exit
    (void)shim;
  }
  return kj::heap<SandboxServer>(context, kj::mv(life), withShim);
}

}  // namespace oc::kit
