// The control socket, before and after the operator token: whatever a client sends, nothing is done before it has shown
// the token, and another client is served.
#include <stdlib.h>

#include "control.capnp.h"
#include "daemon/control/server.h"
#include "hostile_peer.h"
#include "proto/rpc.h"
#include "tests/fakes/memory_backend.h"

namespace {

using namespace oc;

constexpr const char* tokenText = "a token that nobody guesses, 32 B";

// Says whether anything was asked of it.
class WatchedBackend final : public fakes::MemoryBackend {
 public:
  bool allowed = false;
  void fillStatus(proto::Status::Builder status) override {
    require();
    MemoryBackend::fillStatus(status);
  }
  OrRefusal<control::NewWorkIds> newWork(control::WorkRequest request) override {
    require();
    // A request that got so far can be stored and shown.
    if (request.title.size() > 1024 || request.title.find('\n') != std::string::npos) abort();
    if (lastBody.size() > (1u << 20)) lastBody.clear();
    return MemoryBackend::newWork(std::move(request));
  }
  state::Store& store() override {
    require();
    return MemoryBackend::store();
  }
  kj::Promise<void> drain(bool stop) override {
    require();
    return MemoryBackend::drain(stop);
  }
  std::string reload() override {
    require();
    return "";
  }
  kj::Promise<std::vector<control::DoctorLine>> doctor() override {
    require();
    return MemoryBackend::doctor();
  }

 private:
  void require() {
    if (!allowed) abort();
  }
};

std::vector<fuzz::Method> methods() {
  std::vector<fuzz::Method> all;
  auto front = capnp::typeId<proto::Front>(), control = capnp::typeId<proto::Control>(),
       attach = capnp::typeId<proto::AttachSession>();
  all.push_back({front, 0});
  for (uint16_t i = 0; i < 19; ++i) all.push_back({control, i});
  for (uint16_t i = 0; i < 3; ++i) all.push_back({attach, i});
  return all;
}

RpcLimits operatorLimits() {
  RpcLimits limits;
  limits.messageWords = (24u << 20) / 8;
  return limits;
}

struct Daemon {
  Daemon(kj::AsyncIoContext& io) : io(io) {
    backend.allowed = true;
    auto first = backend.add("first"), second = backend.add("second");
    backend.start(first.run);
    backend.start(second.run);
    backend.print(second.run, "what it printed\n");
    backend.end(second.run, state::Outcome::Succeeded, 0);
    backend.allowed = false;
  }
  kj::Own<Connection> serve(kj::Own<kj::AsyncIoStream> stream) {
    return kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::SERVER,
                                control::makeFront(timer, token, backend), operatorLimits(), "a client");
  }
  kj::AsyncIoContext& io;
  SecretBytes token{tokenText};
  WatchedBackend backend;
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
};

void logIn(fuzz::HostilePeer& peer) {
  peer.bootstrap(0);
  peer.call(1, 0, {}, {capnp::typeId<proto::Front>(), 0}, [](capnp::AnyPointer::Builder params) {
    auto login = params.initAs<proto::Front::LoginParams>();
    login.setToken(toData(tokenText));
    login.setVersion(proto::PROTOCOL_VERSION);
  });
}

// An honest client beside it.
void requireService(Daemon& daemon) {
  daemon.backend.allowed = true;
  auto pipe = daemon.io.provider->newTwoWayPipe();
  auto server = daemon.serve(kj::mv(pipe.ends[0]));
  Connection client(kj::mv(pipe.ends[1]), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "the daemon");
  auto login = client.bootstrapOfPeer().castAs<proto::Front>().loginRequest();
  login.setToken(toData(tokenText));
  login.setVersion(proto::PROTOCOL_VERSION);
  auto status = login.send().getControl().statusRequest().send().wait(daemon.io.waitScope);
  if (status.getStatus().getPid() != 4711) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto io = kj::setupAsyncIo();
  fuzz::Input input(data, size, {"w-00000001", "r-00000002", "w-", "demo", "shell", "xterm-256color"});
  Daemon daemon(io);
  auto pipe = io.provider->newTwoWayPipe();
  {
    auto server = daemon.serve(kj::mv(pipe.ends[0]));
    fuzz::HostilePeer peer(kj::mv(pipe.ends[1]), methods());
    daemon.backend.allowed = input.below(4) != 0;
    if (daemon.backend.allowed) logIn(peer);
    for (int steps = 0; !input.done() && !peer.isCutOff() && steps < 300; ++steps) {
      switch (input.below(16)) {
        case 0: daemon.timer.advanceTo(daemon.timer.now() + 2 * kj::SECONDS); break;
        case 1: daemon.backend.print("r-00000001", "more\n"); break;
        case 2: daemon.backend.end("r-00000001", state::Outcome::Failed, 1); break;
        case 3: peer.answer(input); break;
        default: peer.say(input);
      }
      io.waitScope.poll();
    }
  }
  // A wrong token is answered after a second, also when nobody waits for it any more.
  io.waitScope.poll();
  daemon.timer.advanceTo(daemon.timer.now() + 2 * kj::SECONDS);
  io.waitScope.poll();
  if (daemon.backend.waiting != 0 || daemon.backend.attached != 0) abort();  // with its connection everything ends
  requireService(daemon);
  return 0;
}
