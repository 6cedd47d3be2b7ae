#include "server.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/accept.h"
#include "base/log.h"
#include "front.h"
#include "proto/rpc.h"
#include "session.h"

namespace oc::control {

namespace {

constexpr size_t mostConnections = 64;
// What a client may take to show its token. Its one slot of 64 is not for holding.
constexpr kj::Duration loginLimit = 10 * kj::SECONDS;

// The other side is the operator, who may send a body of 16 MiB in one message.
RpcLimits operatorLimits() {
  RpcLimits limits;
  limits.messageWords = (24u << 20) / sizeof(capnp::word);
  return limits;
}

bool isOurs(kj::AsyncIoStream& stream) {
  struct ucred peer = {};
  kj::uint length = sizeof(peer);
  stream.getsockopt(SOL_SOCKET, SO_PEERCRED, &peer, &length);
  if (length == sizeof(peer) && peer.uid == geteuid()) return true;
  logWarning("control socket: closed a connection of user {}", peer.uid);
  return false;
}

class Listener final : private kj::TaskSet::ErrorHandler {
 public:
  Listener(kj::Timer& timer, kj::Own<kj::ConnectionReceiver> socket, const SecretBytes& token, Backend& backend)
      : timer(timer), socket(kj::mv(socket)), token(token), backend(backend), connections(*this) {}

  kj::Promise<void> run() {
    return acceptForever(*socket, timer, "control socket",
                         [this](kj::Own<kj::AsyncIoStream> stream) { take(kj::mv(stream)); });
  }

 private:
  void take(kj::Own<kj::AsyncIoStream> stream) {
    if (!isOurs(*stream)) return;
    if (live >= mostConnections) {
      logWarning("control socket: closed a connection, there are {} already", live);
      return;
    }
    connections.add(talk(kj::mv(stream)));
  }

  kj::Promise<void> talk(kj::Own<kj::AsyncIoStream> stream) {
    ++live;
    auto session = kj::refcounted<Session>();
    auto front = kj::heap<FrontImpl>(kj::addRef(*session), timer, token, backend);
    auto connection = kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::SERVER, kj::mv(front),
                                           operatorLimits(), "a client");
    auto idle = timer.afterDelay(loginLimit).then([&session = *session]() -> kj::Promise<void> {
      if (!session.loggedIn) return kj::READY_NOW;
      return kj::NEVER_DONE;
    });
    auto gone = connection->onDisconnect();
    return gone.exclusiveJoin(kj::mv(idle)).attach(kj::mv(connection), kj::mv(session), kj::defer([this]() {
                                                     --live;
                                                   }));
  }

  // A connection's end, whatever it was.
  void taskFailed(kj::Exception&& exception) override {
    logDebug("control socket: a connection ended: {}", describe(exception));
  }

  kj::Timer& timer;
  kj::Own<kj::ConnectionReceiver> socket;
  const SecretBytes& token;
  Backend& backend;
  size_t live = 0;
  kj::TaskSet connections;
};

}  // namespace

kj::Promise<void> serve(kj::AsyncIoContext& io, kj::Own<kj::ConnectionReceiver> socket, const SecretBytes& token,
                        Backend& backend) {
  auto listener = kj::heap<Listener>(io.provider->getTimer(), kj::mv(socket), token, backend);
  auto running = listener->run();
  return running.attach(kj::mv(listener));
}

}  // namespace oc::control
