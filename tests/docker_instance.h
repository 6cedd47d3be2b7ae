// An instance of open-conduit-docker, as the daemon and the shim have it.
#pragma once

#include <kj/async-io.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/spawn.h"
#include "base/watch.h"
#include "docker.capnp.h"
#include "proto/convert.h"
#include "proto/rpc.h"
#include "providers/kit/frames.h"
#include "providers/kit/handshake.h"
#include "sandbox.capnp.h"

namespace oc::test {

inline std::string variable(const char* name) {
  auto value = getenv(name);
  KJ_REQUIRE(value != nullptr && *value != '\0', "a variable of the tests is not set", name);
  return value;
}

// A connection to an engine, however it comes.
using Connect = std::function<kj::AutoCloseFd()>;

// An instance of open-conduit-docker. Of a run it keeps copies of the attached connections, as the daemon does for the
// shim.
class DockerInstance {
 public:
  // `keepsSecond`: of a task's connections, as the daemon does for a gateway that is made ahead.
  DockerInstance(kj::AsyncIoContext& io, std::vector<std::string> job, unsigned connections, const Connect& connect,
                 bool keepsSecond = false)
      : io(io) {
    bool run = job[0] == "run";
    auto rpc = makeSocketPair();
    SpawnSpec spec;
    spec.program = variable("OPEN_CONDUIT_PROGRAMS") + "/open-conduit-docker";
    spec.arguments = {"--instance", "--"};
    spec.arguments.insert(spec.arguments.end(), job.begin(), job.end());
    spec.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}};
    spec.descriptors = {{rpc.second.get(), 3}, {2, 2}};
    FdPair shim;
    if (run) {
      shim = makeSocketPair();
      spec.descriptors.emplace_back(shim.second.get(), 4);
    }
    std::vector<kj::AutoCloseFd> dialed;
    for (unsigned i = 0; i < connections; ++i) {
      dialed.push_back(connect());
      spec.descriptors.emplace_back(dialed[i].get(), (run ? 5 : 4) + i);
    }
    spawned = spawn(spec);
    rpc.second = nullptr;
    auto& low = *io.lowLevelProvider;
    auto stream = low.wrapSocketFd(kj::mv(rpc.first));
    handshake = readHandshake(*stream, [this](pid_t pid) { serving = pid; }).wait(io.waitScope);
    if (!handshake.ready) return;
    daemon = kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "instance");
    if (keepsSecond) gatewayFd = kj::mv(dialed[1]);
    if (!run) return;
    process = kj::heap<Connection>(low.wrapSocketFd(kj::mv(shim.first)), capnp::rpc::twoparty::Side::CLIENT, nullptr,
                                   RpcLimits(), "instance");
    agentFd = kj::mv(dialed[2]);
    gatewayFd = kj::mv(dialed[3]);
  }

  ~DockerInstance() {
    daemon = nullptr;
    process = nullptr;
    kill();
  }

  // SIGKILL, and gone.
  void kill() {
    for (pid_t pid : {serving, spawned.pid}) {
      if (pid > 0) ::kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    }
    serving = spawned.pid = 0;
  }

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

  proto::Docker::Client docker() { return daemon->bootstrapOfPeer().castAs<proto::Docker>(); }
  proto::Process::Client shim() { return process->bootstrapOfPeer().castAs<proto::Process>(); }

  void signal(int number) {
    auto request = shim().signalRequest();
    request.setNumber(number);
    request.send().wait(io.waitScope);
  }
  ProcessEnd wait() { return read(shim().waitRequest().send().wait(io.waitScope).getStatus()); }

  kj::AsyncIoContext& io;
  Spawned spawned{0, nullptr};
  pid_t serving = 0;
  Handshake handshake;
  kj::Own<Connection> daemon, process;
  kj::AutoCloseFd agentFd, gatewayFd;
};

// What a container prints, read to its end.
struct Streams {
  std::string output, errors;
};

class AttachedStream {
 public:
  AttachedStream(kj::AsyncIoContext& io, kj::AutoCloseFd fd, bool tty = false)
      : io(io), tty(tty), stream(io.lowLevelProvider->wrapSocketFd(kj::mv(fd))), reading(read().fork()) {}

  void write(const std::string& text) { stream->write(text.data(), text.size()).wait(io.waitScope); }
  kj::Promise<void> writing(const std::string& text) { return stream->write(text.data(), text.size()); }
  void end() { stream->shutdownWrite(); }
  Streams readToEnd() {
    reading.addBranch().wait(io.waitScope);
    return streams;
  }
  bool waitForOutput(const std::string& text) {
    for (int i = 0; i < 600 && streams.output.find(text) == std::string::npos; ++i) {
      io.provider->getTimer().afterDelay(20 * kj::MILLISECONDS).wait(io.waitScope);
    }
    return streams.output.find(text) != std::string::npos;
  }

  Streams streams;

 private:
  kj::Promise<void> read() {
    return stream->tryRead(buffer, 1, sizeof(buffer)).then([this](size_t n) -> kj::Promise<void> {
      if (n == 0) return kj::READY_NOW;
      if (tty) {
        streams.output.append(reinterpret_cast<char*>(buffer), n);
      } else {
        frames.feed(kj::arrayPtr(buffer, n),
                    [this](kit::FrameReader::Stream which, kj::ArrayPtr<const kj::byte> bytes) {
                      auto& text = which == kit::FrameReader::Stream::Output ? streams.output : streams.errors;
                      text.append(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
                    });
      }
      return read();
    });
  }

  kj::AsyncIoContext& io;
  bool tty;
  kj::Own<kj::AsyncIoStream> stream;
  kit::FrameReader frames;
  kj::byte buffer[65536];
  kj::ForkedPromise<void> reading;
};

}  // namespace oc::test
