#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent_tree.h"
#include "base/fd.h"
#include "base/text.h"

namespace oc::kit {

namespace {

std::string workingDirectory() {
  char path[4096];
  KJ_REQUIRE(getcwd(path, sizeof(path)) != nullptr, "the working directory cannot be told");
  return path;
}

void sendCommand(proto::Sandbox::LaunchParams::Builder params, const std::vector<std::string>& command) {
  auto words = params.initCommand(command.size());
  for (size_t i = 0; i < command.size(); ++i) words.set(i, toText(command[i]));
  auto environment = environmentByHand();
  auto variables = params.initEnvironment(environment.size());
  for (size_t i = 0; i < environment.size(); ++i) {
    variables[i].setName(toText(environment[i].first));
    variables[i].setValue(toText(environment[i].second));
  }
  params.setDirectory(toText(workingDirectory()));
}

}  // namespace

// The first signal asks the agent to stop, the second ends it.
kj::Promise<void> stopOnSignals(kj::UnixEventPort& port, proto::Process::Client process, int number) {
  auto request = process.signalRequest();
  request.setNumber(number);
  return port.onSignal(SIGINT)
      .exclusiveJoin(port.onSignal(SIGTERM))
      .then([request = kj::mv(request)](siginfo_t) mutable { return request.send().ignoreResult(); })
      .then([&port, process, number]() mutable -> kj::Promise<void> {
        if (number == SIGKILL) return kj::READY_NOW;
        return stopOnSignals(port, process, SIGKILL);
      });
}

int exitCode(const ProcessEnd& end) {
  if (!end.known) return 1;
  return end.signaled ? 128 + end.code : end.code;
}

std::vector<std::pair<std::string, std::string>> environmentByHand() {
  std::vector<std::pair<std::string, std::string>> environment;
  for (auto name : {"COLORTERM", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "NO_COLOR", "PATH", "SHELL", "TERM",
                    "TZ", "USER"}) {
    if (auto value = getenv(name)) environment.emplace_back(name, value);
  }
  return environment;
}

int runAgentByHand(const std::vector<std::string>& job, const std::vector<std::string>& command) {
  for (int number : {SIGINT, SIGTERM}) kj::UnixEventPort::captureSignal(number);
  auto pair = makeSocketPair();
  auto instance = startByHand(job, {{pair.second.get(), shimDescriptor},
                                    {STDIN_FILENO, agentInput},
                                    {STDOUT_FILENO, agentOutput},
                                    {STDERR_FILENO, agentErrors}});
  pair.second = nullptr;
  auto& io = instance->io();
  int code = 1;
  {
    Connection connection(io.lowLevelProvider->wrapSocketFd(kj::mv(pair.first)), capnp::rpc::twoparty::Side::CLIENT,
                          nullptr, RpcLimits(), "the instance");
    auto process = connection.bootstrapOfPeer().castAs<proto::Process>();
    auto launch = instance->capability().castAs<proto::Sandbox>().launchRequest();
    sendCommand(launch, command);
    auto answer = launch.send().wait(io.waitScope);
    auto refusal = read(answer.getRefusal());
    if (!refusal.reason.empty()) {
      fprintf(stderr, "refused: %s: %s\n", refusal.reason.c_str(), refusal.what.c_str());
      if (!refusal.fix.empty()) fprintf(stderr, "fix: %s\n", refusal.fix.c_str());
    } else {
      auto stops = stopOnSignals(io.unixEventPort, process, SIGTERM).eagerlyEvaluate(nullptr);
      code = exitCode(read(process.waitRequest().send().wait(io.waitScope).getStatus()));
    }
  }
  instance->finish();
  return code;
}

int checkByHand(const std::vector<std::string>& job) {
  auto instance = startByHand(job);
  auto request = instance->capability().castAs<proto::Sandbox>().checkRequest();
  bool good = true;
  {
    auto answer = request.send().wait(instance->io().waitScope);
    for (auto check : answer.getReport().getChecks()) {
      auto word = check.getOk() ? "ok  " : check.getWanted() ? "warn" : "FAIL";
      printf("%s  %-16s %s\n", word, printable(toString(check.getName())).c_str(),
             printable(toString(check.getWhat())).c_str());
      if (check.getFix().size() > 0) printf("      fix: %s\n", printable(toString(check.getFix())).c_str());
      good = good && (check.getOk() || check.getWanted());
    }
  }
  instance->finish();
  return good ? 0 : 1;
}

}  // namespace oc::kit
