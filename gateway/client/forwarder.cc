#include "forwarder.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

#include "base/error.h"
#include "gateway/address.h"
#include "gateway/socket_file.h"

namespace oc::gateway {

namespace {

constexpr int backlog = 4096, mostAcceptedAtOnce = 64;
constexpr int64_t retryMilliseconds = 5;

void option(int fd, int level, int name) {
  int on = 1;
  setsockopt(fd, level, name, &on, sizeof(on));
}

kj::AutoCloseFd listenAtPort(uint16_t port) {
  int fd;
  KJ_SYSCALL(fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd listener(fd);
  option(fd, SOL_SOCKET, SO_REUSEADDR);
  sockaddr_storage address;
  auto size = toSocketAddress(*parseAddress("127.0.0.1"), port, address);
  bool listens = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd, backlog) == 0;
  if (!listens) fail(fmt::format("can't listen at 127.0.0.1:{}: {}", port, strerror(errno)));
  return listener;
}

}  // namespace

class Forwarder::Connection final {
 public:
  Connection(Forwarder& forwarder, kj::AutoCloseFd from)
      : forwarder(forwarder),
        nearSide(*this, near),
        farSide(*this, far),
        up(forwarder.pipes),
        down(forwarder.pipes),
        retry(forwarder.loop, [this]() { dial(); }) {
    near.fd = kj::mv(from);
    near.readable = near.writable = true;
    forwarder.loop.watch(near.fd, nearSide);
  }

  ~Connection() {
    forwarder.loop.unwatch(near.fd, nearSide);
    if (far.fd.get() >= 0) forwarder.loop.unwatch(far.fd, farSide);
  }

  void dial() {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return close();
    kj::AutoCloseFd socket(fd);
    auto address = unixAddress(forwarder.socketPath);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) {
      // The listener's queue is full: it will be emptied.
      if (errno == EAGAIN) return retry.start(retryMilliseconds);
      return close();
    }
    far.fd = kj::mv(socket);
    far.writable = true;
    forwarder.loop.watch(fd, farSide);
    run();
  }

 private:
  class Side final : public Watcher {
   public:
    Side(Connection& connection, End& end) : connection(connection), end(end) {}
    void ready(uint32_t events) override {
      end.note(events);
      if (&end == &connection.near && (events & (EPOLLHUP | EPOLLERR))) connection.hungUp = true;
      connection.run();
    }

   private:
    Connection& connection;
    End& end;
  };

  void run() {
    if (far.fd.get() < 0) return;
    auto first = up.run(near, far), second = down.run(far, near);
    passOn(up, far.fd, upDone);
    passOn(down, near.fd, downDone);
    bool nobodyReads = down.state() == Pump::State::Failed || (hungUp && upDone);
    if (nobodyReads || (upDone && downDone)) return close();
    if (first == Pump::Progress::Unfinished || second == Pump::Progress::Unfinished) forwarder.loop.again(nearSide);
  }

  // A direction that is over, well or not, is an end for who listens to it.
  static void passOn(const Pump& pump, int to, bool& done) {
    if (done || pump.state() == Pump::State::Open) return;
    done = true;
    shutdown(to, SHUT_WR);
  }

  void close() {
    forwarder.connections.erase(this);
    delete this;
  }

  Forwarder& forwarder;
  End near, far;
  Side nearSide, farSide;
  Pump up, down;
  Timer retry;
  bool upDone = false, downDone = false;
  bool hungUp = false;  // the agent's process is gone, not only silent
};

Forwarder::Forwarder(Loop& loop, uint16_t port, std::string socketPath)
    : loop(loop), socketPath(std::move(socketPath)), listener(listenAtPort(port)), retry(loop, [this]() { ready(0); }) {
  loop.watch(listener, *this);
}

Forwarder::~Forwarder() {
  loop.unwatch(listener, *this);
  for (auto connection : std::unordered_set<Connection*>(std::move(connections))) delete connection;
}

void Forwarder::ready(uint32_t) {
  for (int i = 0; i < mostAcceptedAtOnce; ++i) {
    if (!accept()) return;
  }
  loop.again(*this);
}

bool Forwarder::accept() {
  int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EINTR || errno == ECONNABORTED) return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK) retry.start(100);
    return false;
  }
  option(fd, IPPROTO_TCP, TCP_NODELAY);
  auto connection = new Connection(*this, kj::AutoCloseFd(fd));
  connections.insert(connection);
  connection->dial();
  return true;
}

}  // namespace oc::gateway
