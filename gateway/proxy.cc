#include "proxy.h"

#include <errno.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "session.h"
#include "socket_file.h"

namespace oc::gateway {

namespace {

constexpr int mostAcceptedAtOnce = 64;
// Sessions above the limit that are told so; the rest is closed without a word.
constexpr size_t mostToldTooMany = 64;
constexpr int64_t retryMilliseconds = 100;

// What a client that does not read leaves in the kernel is the gateway's memory, of which it has little: the more
// connections there are, the less each may have. 0: as the kernel has it.
int sendBufferOf(size_t connections) {
  if (connections <= 256) return 0;
  return connections <= 2048 ? 16 << 10 : 2 << 10;
}

}  // namespace

Proxy::Proxy(Loop& loop, const std::string& path, Policy policy, Journal& journal, ProxyLimits limits)
    : loop(loop),
      rules(std::move(policy)),
      journal(journal),
      limits(limits),
      resolver(loop),
      pipes(limits.pipes),
      retry(loop, [this]() { ready(0); }) {
  listenAlso(listenAt(path));
}

Proxy::~Proxy() {
  for (auto& listener : listeners) loop.unwatch(listener, *this);
  for (auto session : std::unordered_set<Session*>(std::move(sessions))) delete session;
}

ProxyTotals Proxy::totals() const {
  auto result = done;
  for (auto session : sessions) {
    if (session->isNoted()) continue;
    result.bytesUp += session->up();
    result.bytesDown += session->down();
  }
  return result;
}

void Proxy::resume() {
  if (heldBack) loop.again(*this);
}

void Proxy::listenAlso(kj::AutoCloseFd listener) {
  listeners.push_back(kj::mv(listener));
  loop.watch(listeners.back(), *this);
}

void Proxy::ready(uint32_t) {
  bool more = false;
  for (auto& listener : listeners) more = acceptSome(listener) || more;
  if (more) loop.again(*this);
}

// Whether there may be others, whose turn comes later.
bool Proxy::acceptSome(int listener) {
  for (int i = 0; i < mostAcceptedAtOnce; ++i) {
    heldBack = journal.isFull();
    if (heldBack || !accept(listener)) return false;
  }
  return true;
}

bool Proxy::accept(int listener) {
  int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EINTR || errno == ECONNABORTED) return true;
    // Out of descriptors or memory: what is open goes on, and some of it will end.
    if (errno != EAGAIN && errno != EWOULDBLOCK) retry.start(retryMilliseconds);
    return false;
  }
  kj::AutoCloseFd client(fd);
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // no more than refused on a Unix socket
  if (sessions.size() >= limits.connections + mostToldTooMany) {
    Attempt attempt;
    attempt.reason = "too_many";
    ++done.denied;
    journal.note(attempt);
    return true;
  }
  bool tooMany = sessions.size() >= limits.connections;
  auto session = new Session(*this, kj::mv(client), sendBufferOf(sessions.size()));
  sessions.insert(session);
  if (tooMany) {
    session->refuseForNumber();
  } else {
    session->begin();
  }
  return true;
}

void Proxy::ended(Session& session) {
  sessions.erase(&session);
  delete &session;
}

}  // namespace oc::gateway
