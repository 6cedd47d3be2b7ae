#include "agent_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "base/log.h"
#include "base/places.h"
#include "base/text.h"
#include "proto/convert.h"
#include "proto/key_proof.h"
#include "proto/shim_peer.h"
#include "sandbox.capnp.h"

namespace oc::work {

namespace {

// srt takes half a second, a loaded machine a few.
constexpr auto launchLimit = 120 * kj::SECONDS;
// For a shim that may go, and the tree's parent, which goes with it.
constexpr auto leaveLimit = 5 * kj::SECONDS;

}  // namespace

struct sockaddr_un addressOf(const std::string& path) {
  requireSocketPathFits(path);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

kj::AutoCloseFd unixSocket() {
  int fd;
  KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return kj::AutoCloseFd(fd);
}

kj::AutoCloseFd listenAt(const std::string& path) {
  auto address = addressOf(path);
  auto fd = unixSocket();
  if (unlink(path.c_str()) < 0 && errno != ENOENT) KJ_FAIL_SYSCALL("unlink", errno, path);
  KJ_SYSCALL(bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), path);
  KJ_SYSCALL(chmod(path.c_str(), 0600), path);
  KJ_SYSCALL(listen(fd.get(), 16), path);
  return fd;
}

void fillSetup(proto::RunSetup::Builder setup, const AgentSpec& spec) {
  setup.setExecutor(toText(spec.executor));
  setup.setConfig(toText(spec.executorConfig));
  setup.setStdin(toData(spec.brief));
  setup.setLogLimit(spec.logLimit);
  setup.setTimeoutSeconds(spec.timeoutSeconds);
  setup.setStallSeconds(spec.stallSeconds);
  setup.setGraceSeconds(spec.graceSeconds);
  auto toolbelt = setup.initToolbelt();
  toolbelt.setToken(toData(spec.toolbeltToken.view()));
  auto operations = toolbelt.initOperations(spec.operations.size());
  for (size_t i = 0; i < spec.operations.size(); ++i) {
    operations[i].setName(toText(spec.operations[i].name));
    operations[i].setDescription(toText(spec.operations[i].description));
    operations[i].setInputSchema(toText(spec.operations[i].inputSchema));
    operations[i].setHidden(spec.operations[i].hidden);
  }
}

// What is handed to the two processes; ours are closed when both have theirs.
struct Agent::Starting {
  FdPair process, input, output, errors;
  kj::AutoCloseFd listener, log, toolbelt;
  AgentSpec spec;
  kj::Own<Agent> agent;
  kj::Maybe<proto::Sandbox::Client> sandbox;

  Starting(AgentSpec specParam, kj::Own<Agent> agent)
      : process(makeSocketPair()),
        input(makePipe()),
        output(makePipe()),
        errors(makePipe()),
        listener(listenAt(specParam.socket)),
        log(openFile(specParam.log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600)),
        toolbelt(specParam.operations.empty() || specParam.toolbeltSocket.empty() ? kj::AutoCloseFd()
                                                                                  : listenAt(specParam.toolbeltSocket)),
        spec(kj::mv(specParam)),
        agent(kj::mv(agent)) {}

  supervisor::LaunchSpec parentSpec() {
    supervisor::LaunchSpec result;
    result.provider = spec.provider;
    result.label = "run " + spec.run;
    result.job = spec.job;
    result.hidden = spec.hidden;
    result.kept = spec.kept;
    result.descriptors = {
        {process.second.get(), 4}, {input.first.get(), 5}, {output.second.get(), 6}, {errors.second.get(), 7}};
    result.outlivesUs = true;
    return result;
  }

  supervisor::LaunchSpec shimSpec() {
    supervisor::LaunchSpec result;
    result.provider = "run";
    result.label = "run " + spec.run;
    result.descriptors = {{process.first.get(), 4}, {input.second.get(), 5}, {output.first.get(), 6},
                          {errors.first.get(), 7},  {listener.get(), 8},     {log.get(), 9}};
    if (toolbelt.get() >= 0) {
      result.descriptors.emplace_back(toolbelt.get(), 10);
      result.job.push_back("--toolbelt");
    }
    result.carriesCalls = true;
    result.outlivesUs = true;
    return result;
  }

  void closeOurs() {
    for (auto* pair : {&process, &input, &output, &errors}) {
      pair->first = nullptr;
      pair->second = nullptr;
    }
    listener = nullptr;
    log = nullptr;
    toolbelt = nullptr;
  }

  capnp::RemotePromise<proto::Sandbox::LaunchResults> launch() {
    auto request = KJ_REQUIRE_NONNULL(sandbox).launchRequest();
    auto command = request.initCommand(spec.command.size());
    for (size_t i = 0; i < spec.command.size(); ++i) command.set(i, toText(spec.command[i]));
    std::erase_if(spec.environment, [this](auto& entry) { return spec.secrets.contains(entry.first); });
    auto environment = request.initEnvironment(spec.environment.size() + spec.secrets.size());
    size_t count = 0;
    for (auto& [name, value] : spec.environment) {
      environment[count].setName(toText(name));
      environment[count++].setValue(toText(value));
    }
    for (auto& [name, value] : spec.secrets) {
      environment[count].setName(toText(name));
      auto to = environment[count++].initValue(value.size());
      memcpy(to.begin(), value.view().data(), value.size());
    }
    spec.secrets.clear();
    request.setDirectory(toText(spec.directory));
    return request.send();
  }
};

Agent::Agent(AgentListener& listener) : listener(listener) {}
Agent::~Agent() noexcept(false) {}

kj::Promise<OrRefusal<kj::Own<Agent>>> Agent::start(supervisor::Supervisor& supervisor, AgentSpec spec,
                                                    const SecretBytes& key, AgentListener& listener,
                                                    kj::Function<void(pid_t, pid_t)> onPids) {
  return kj::evalNow([&]() -> kj::Promise<OrRefusal<kj::Own<Agent>>> {
    auto& timer = supervisor.timer();
    auto starting = kj::heap<Starting>(kj::mv(spec), kj::heap<Agent>(listener));
    auto& ref = *starting;
    auto launched = supervisor.start(ref.parentSpec())
                        .then([&supervisor, &ref](kj::Own<supervisor::Instance> parent) {
                          ref.sandbox = parent->as<proto::Sandbox>();
                          ref.agent->parent = kj::mv(parent);
                          return supervisor.start(ref.shimSpec());
                        })
                        .then([&timer, &ref, &listener, key = key.clone(),
                               onPids = kj::mv(onPids)](kj::Own<supervisor::Instance> shim) mutable {
                          ref.agent->shim = kj::mv(shim);
                          ref.closeOurs();
                          onPids(ref.agent->shim->pid(), ref.agent->parent->pid());
                          auto begin = ref.agent->shim->as<proto::Shim>().beginRequest();
                          fillSetup(begin.initSetup(), ref.spec);
                          begin.setKey(toData(key.view()));
                          begin.setHost(hostFor(listener));
                          KJ_IF_MAYBE (toolbelt, ref.spec.toolbelt) {
                            begin.setToolbelt(*toolbelt);
                          }
                          auto session = begin.send().then([](auto&& response) { return response.getSession(); });
                          return withDeadline(timer, agentCallLimit, "the run's shim", kj::mv(session));
                        })
                        .then([&timer, &ref](proto::RunSession::Client session) {
                          ref.agent->session = session;
                          auto refusal =
                              ref.launch().then([](auto&& response) { return oc::read(response.getRefusal()); });
                          return withDeadline(timer, launchLimit, "open-conduit-" + ref.spec.provider, kj::mv(refusal));
                        })
                        .then([&timer, &ref](Refusal refusal) -> kj::Promise<Refusal> {
                          if (!refusal.reason.empty()) return refusal;
                          auto told = KJ_REQUIRE_NONNULL(ref.agent->session).launchedRequest().send().ignoreResult();
                          return withDeadline(timer, agentCallLimit, "the run's shim", kj::mv(told)).then([]() {
                            return Refusal();
                          });
                        });
    return launched.then([starting = kj::mv(starting)](Refusal refusal) mutable -> OrRefusal<kj::Own<Agent>> {
      auto agent = kj::mv(starting->agent);
      if (!refusal.reason.empty()) {
        agent->kill();
        return refusal;
      }
      agent->watchShim(agent->shim->onDisconnect());
      return kj::mv(agent);
    });
  });
}

void Agent::watchShim(kj::Promise<void> gone) {
  watching = gone.then([this]() {
                   if (finished) return;
                   auto why = shim.get() != nullptr ? shim->violation() : adopted->violation();
                   listener.onLost(why.empty() ? "the run's shim went away" : "the run's shim was cut off: " + why);
                 })
                 .eagerlyEvaluate([](kj::Exception&& e) { logError("{}", describe(e)); });
}

void Agent::stop(proto::StopReason why) {
  KJ_IF_MAYBE (s, session) {
    auto request = s->stopRequest();
    request.setWhy(why);
    // A shim that is gone has its end told by watchShim.
    request.send().ignoreResult().detach([](kj::Exception&& e) { logDebug("{}", describe(e)); });
  }
}

kj::Promise<Injected> Agent::inject(const std::string& id, const std::string& text) {
  KJ_IF_MAYBE (s, session) {
    auto request = s->injectRequest();
    request.setId(toText(id));
    request.setText(toText(text));
    return request.send()
        .then([](auto&& response) {
          return Injected{response.getDelivered(), bounded(response.getWhy(), 256)};
        })
        .catch_([](kj::Exception&& exception) {
          return Injected{false, describe(exception)};
        });
  }
  return Injected{false, "the agent is not there yet"};
}

void Agent::revokeToolbelt() {
  KJ_IF_MAYBE (s, session) {
    // A shim that is gone takes the toolbelt with it.
    s->revokeToolbeltRequest().send().ignoreResult().detach([](kj::Exception&& e) { logDebug("{}", describe(e)); });
  }
}

kj::Promise<void> Agent::finish(kj::Timer& timer) {
  finished = true;
  KJ_IF_MAYBE (s, session) {
    return withDeadline(timer, agentCallLimit, "the run's shim", s->finishRequest().send().ignoreResult())
        .then([this, &timer]() { return withDeadline(timer, leaveLimit, "the run's shim", partsGone()); })
        .catch_([](kj::Exception&& e) { logDebug("{}", describe(e)); });
  }
  return kj::READY_NOW;
}

// A run that has ended has no process any more.
kj::Promise<void> Agent::partsGone() {
  if (adopted.get() != nullptr) return adopted->onDisconnect();
  kj::Vector<kj::Promise<void>> ends;
  for (auto* part : {shim.get(), parent.get()}) {
    if (part != nullptr) ends.add(part->onEnd().ignoreResult());
  }
  return kj::joinPromises(ends.releaseAsArray());
}

void Agent::kill() {
  finished = true;
  if (shim.get() != nullptr) shim->kill();
  if (parent.get() != nullptr) parent->kill();
}

}  // namespace oc::work
