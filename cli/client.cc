#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/crypto.h"
#include "base/fd.h"
#include "common.capnp.h"

namespace oc::cli {

namespace {

constexpr const char* howToStart = "open-conduit daemon   or   systemctl --user start open-conduit";
// A wrong token is answered after a second.
constexpr kj::Duration loginLimit = 10 * kj::SECONDS;
// For a daemon whose backlog is full.
constexpr int dialTries = 50;
constexpr useconds_t dialPause = 100'000;

// The daemon is trusted with more than it trusts us: 10,000 rows come in one message.
RpcLimits daemonLimits() {
  RpcLimits limits;
  limits.messageWords = (64u << 20) / sizeof(capnp::word);
  return limits;
}

Failure noDaemon(std::string what) { return {NoDaemon, {"no_daemon", std::move(what), howToStart}}; }

Failure cannotDial(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return noDaemon(fmt::format("no daemon is running: there is no {}", path));
    case ECONNREFUSED: return noDaemon(fmt::format("no daemon is running: nobody listens on {}", path));
    case EAGAIN: return noDaemon(fmt::format("the daemon does not take connections on {}", path));
    default: return {No, {"connect_failed", fmt::format("{}: {}", path, strerror(error)), "open-conduit doctor"}};
  }
}

kj::AutoCloseFd dial(const std::string& path) {
  requireSocketPathFits(path);
  int fd;
  KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  kj::AutoCloseFd owned(fd);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  for (int i = 0; connect(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) < 0; ++i) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN || i == dialTries) throw cannotDial(path, errno);
    usleep(dialPause);
  }
  return owned;
}

// Without XDG_RUNTIME_DIR the socket is beneath /tmp, where anybody may have made it: the token is for our own daemon.
void requireOurs(int fd, const std::string& path) {
  struct ucred peer = {};
  socklen_t length = sizeof(peer);
  KJ_SYSCALL(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length), path);
  if (peer.uid == geteuid()) return;
  throw Failure{No,
                {"not_ours", fmt::format("{} is served by user {}, not by you", path, peer.uid),
                 "set XDG_RUNTIME_DIR to a directory of your own, for the daemon and for this program"}};
}

SecretBytes readToken(const std::string& path) {
  try {
    return SecretBytes(readFile(path, 4096));
  } catch (const kj::Exception& exception) {
    throw Failure{No,
                  {"token_unreadable", fmt::format("the operator token: {}", describe(exception)),
                   "use the XDG_STATE_HOME that the daemon was started with"}};
  }
}

Failure notLetIn(const kj::Exception& exception) {
  auto text = describe(exception);
  switch (exception.getType()) {
    case kj::Exception::Type::UNIMPLEMENTED:
      return {No,
              {"version_mismatch", fmt::format("{}; this is open-conduit {}", text, OPEN_CONDUIT_VERSION),
               "restart the daemon (runs go on): systemctl --user restart open-conduit"}};
    case kj::Exception::Type::DISCONNECTED:
      return {NoDaemon,
              {"no_daemon", "the daemon closed the connection; it takes 64 at a time", "try again in a moment"}};
    case kj::Exception::Type::FAILED:
      return {No, {"token_wrong", text, "use the XDG_STATE_HOME that the daemon was started with"}};
    default: return failureOf(exception);
  }
}

}  // namespace

Link logIn(kj::AsyncIoContext& io, kj::Own<kj::AsyncIoStream> stream, std::string_view token) {
  auto connection =
      kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, daemonLimits(), "the daemon");
  auto request = connection->bootstrapOfPeer().castAs<proto::Front>().loginRequest();
  request.setToken(toData(token));
  request.setVersion(proto::PROTOCOL_VERSION);
  try {
    kj::Promise<capnp::Response<proto::Front::LoginResults>> call = request.send();
    auto answer = withDeadline(io.provider->getTimer(), loginLimit, "the daemon", kj::mv(call)).wait(io.waitScope);
    return {kj::mv(connection), answer.getControl()};
  } catch (const kj::Exception& exception) {
    throw notLetIn(exception);
  }
}

Link connectToDaemon(kj::AsyncIoContext& io, const Places& places) {
  auto path = places.controlSocket();
  auto fd = dial(path);
  requireOurs(fd, path);
  auto token = readToken(places.operatorToken());
  return logIn(io, io.lowLevelProvider->wrapSocketFd(kj::mv(fd)), token.view());
}

Failure failureOf(const kj::Exception& exception) {
  switch (exception.getType()) {
    case kj::Exception::Type::DISCONNECTED: return noDaemon("the daemon went away");
    case kj::Exception::Type::OVERLOADED:
      return {NoDaemon, {"no_answer", describe(exception), "open-conduit status; see the daemon's log"}};
    default: return {No, {"failed", describe(exception), ""}};
  }
}

void requireDone(proto::Refusal::Reader refusal) {
  if (refusal.getReason().size() > 0) throw Failure{No, read(refusal)};
}

}  // namespace oc::cli
