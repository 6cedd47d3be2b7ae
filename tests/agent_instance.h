// An instance of open-conduit-srt or open-conduit-host, as the daemon and the shim have it: the daemon's RPC on
// descriptor 3, the shim's on 4, the agent's streams on 5, 6 and 7.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/spawn.h"
#include "base/watch.h"
#include "proto/convert.h"
#include "proto/rpc.h"
#include "providers/kit/handshake.h"
#include "sandbox.capnp.h"

namespace oc::test {

struct AgentEnd {
  ProcessEnd end;
  std::string output, errors;
};

class AgentInstance {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  // `words`: all that follows "--instance". `extra`: descriptors of ours to leave open in the instance, (ours, theirs).
  AgentInstance(kj::AsyncIoContext& io, const std::string& program, std::vector<std::string> words,
                bool withShim = true, std::vector<std::pair<int, int>> extra = {})
      : io(io) {
    auto rpc = makeSocketPair();
    SpawnSpec spec;
    spec.program = std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/" + program;
    words.insert(words.begin(), "--instance");
    spec.arguments = std::move(words);
    spec.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}};
    spec.descriptors = std::move(extra);
    spec.descriptors.insert(spec.descriptors.end(), {{rpc.second.get(), 3}, {2, 2}});
    FdPair shim, input, output, errors;
    if (withShim) {
      shim = makeSocketPair();
      input = makePipe();
      output = makePipe();
      errors = makePipe();
      spec.descriptors.insert(
          spec.descriptors.end(),
          {{shim.second.get(), 4}, {input.first.get(), 5}, {output.second.get(), 6}, {errors.second.get(), 7}});
    }
    spawned = spawn(spec);
    rpc.second = nullptr;

    auto& low = *io.lowLevelProvider;
    auto stream = low.wrapSocketFd(kj::mv(rpc.first));
    handshake = readHandshake(*stream, [this](pid_t pid) { serving = pid; }).wait(io.waitScope);
    if (!handshake.ready) return;
    daemon = kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "instance");
    if (!withShim) return;
    process = kj::heap<Connection>(low.wrapSocketFd(kj::mv(shim.first)), capnp::rpc::twoparty::Side::CLIENT, nullptr,
                                   RpcLimits(), "instance");
    agentInput = low.wrapOutputFd(kj::mv(input.second));
    read(outputStream = low.wrapInputFd(kj::mv(output.first)), outputText);
    read(errorsStream = low.wrapInputFd(kj::mv(errors.first)), errorsText);
  }

  ~AgentInstance() {
    daemon = nullptr;
    process = nullptr;
    for (pid_t pid : {serving, spawned.pid}) {
      if (pid > 0) ::kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    }
  }

  proto::Sandbox::Client sandbox() { return daemon->bootstrapOfPeer().castAs<proto::Sandbox>(); }
  proto::Process::Client shim() { return process->bootstrapOfPeer().castAs<proto::Process>(); }

  Refusal launch(const std::vector<std::string>& command, const Environment& environment,
                 const std::string& directory) {
    auto request = sandbox().launchRequest();
    auto words = request.initCommand(command.size());
    for (size_t i = 0; i < command.size(); ++i) words.set(i, toText(command[i]));
    auto variables = request.initEnvironment(environment.size());
    for (size_t i = 0; i < environment.size(); ++i) {
      variables[i].setName(toText(environment[i].first));
      variables[i].setValue(toText(environment[i].second));
    }
    request.setDirectory(toText(directory));
    auto answer = request.send().wait(io.waitScope);
    auto refusal = oc::read(answer.getRefusal());
    KJ_REQUIRE(answer.getStarted() == refusal.reason.empty());
    return refusal;
  }

  void signal(int number) {
    auto request = shim().signalRequest();
    request.setNumber(number);
    request.send().wait(io.waitScope);
  }

  // Waits until the agent has written `text`.
  bool waitForOutput(const std::string& text) {
    for (int i = 0; i < 600; ++i) {
      if (outputText.find(text) != std::string::npos) return true;
      io.provider->getTimer().afterDelay(50 * kj::MILLISECONDS).wait(io.waitScope);
    }
    return false;
  }

  AgentEnd wait() {
    AgentEnd result;
    result.end = oc::read(shim().waitRequest().send().wait(io.waitScope).getStatus());
    // The tree is gone, so both streams end.
    for (auto& reading : readings) reading.addBranch().wait(io.waitScope);
    result.output = outputText;
    result.errors = errorsText;
    return result;
  }

  // Until the process that serves has ended by itself.
  bool endsByItself() {
    for (int i = 0; i < 600; ++i) {
      int status;
      if (waitpid(serving, &status, WNOHANG) == serving) {
        if (spawned.pid == serving) spawned.pid = 0;
        serving = 0;
        return true;
      }
      io.provider->getTimer().afterDelay(50 * kj::MILLISECONDS).wait(io.waitScope);
    }
    return false;
  }

  kj::AsyncIoContext& io;
  Spawned spawned{0, nullptr};
  pid_t serving = 0;
  Handshake handshake;
  kj::Own<Connection> daemon, process;
  kj::Own<kj::AsyncOutputStream> agentInput;
  std::string outputText, errorsText;

 private:
  void read(kj::Own<kj::AsyncInputStream>& stream, std::string& text) {
    readings.push_back(pump(*stream, text, kj::heapArray<kj::byte>(65536)).fork());
  }

  static kj::Promise<void> pump(kj::AsyncInputStream& from, std::string& to, kj::Array<kj::byte> buffer) {
    auto begin = buffer.begin();
    auto size = buffer.size();
    return from.tryRead(begin, 1, size)
        .then([&from, &to, buffer = kj::mv(buffer)](size_t n) mutable -> kj::Promise<void> {
          if (n == 0) return kj::READY_NOW;
          to.append(reinterpret_cast<const char*>(buffer.begin()), n);
          return pump(from, to, kj::mv(buffer));
        });
  }

  kj::Own<kj::AsyncInputStream> outputStream, errorsStream;
  std::vector<kj::ForkedPromise<void>> readings;
};

}  // namespace oc::test
