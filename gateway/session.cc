#include "session.h"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace oc::gateway {

namespace {

// A client that was refused may still be sending: so much of it is read, so that it gets to read the answer.
constexpr size_t mostDiscarded = 256 << 10;
// A head of this size has its place whatever others take.
constexpr size_t shortHead = 4 << 10;

int64_t wallClock() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void option(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof(value)); }

// A server that vanished is noticed within three minutes; one that is only silent may be so for ever.
void keepAlive(int fd) {
  option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 30);
  option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

}  // namespace

struct Session::Opening {
  Opening(Proxy& proxy, std::function<void()> late) : deadline(proxy.loop, std::move(late)), total(proxy.headBytes) {}
  ~Opening() { total -= held; }
  KJ_DISALLOW_COPY(Opening);

  // Counts what is held by now.
  void count() {
    auto size = read.capacity() + request.head.capacity();
    total += size - held;
    held = size;
  }
  // Nothing of the request is needed any more.
  void forget() {
    // Assigning an empty string would keep the memory.
    std::string().swap(request.head);
    std::string().swap(read);
    count();
  }

  Timer deadline;    // of the stage that it is in
  std::string read;  // the head as it comes, then what came behind it
  size_t& total;     // of all heads
  size_t held = 0;   // of it
  size_t discarded = 0;
  Request request;
  std::unique_ptr<Resolver::Question> question;
  std::vector<Address> addresses;
  size_t next = 0;
  int64_t dialUntil = 0;  // of the loop's clock; 0: not dialed yet
  int lastError = 0;
};

void Session::Side::ready(uint32_t events) {
  bool hasRead = !end.writable && (events & EPOLLOUT) != 0;
  end.note(events);
  if (&end == &session.client) {
    if (hasRead) session.giveRoom();
    if (events & (EPOLLHUP | EPOLLERR)) session.hungUp = true;
    if (events & EPOLLRDHUP) session.halfClosed = true;
  }
  session.advance();
}

Session::Session(Proxy& proxy, kj::AutoCloseFd fd, int sendBuffer)
    : proxy(proxy),
      sendBuffer(sendBuffer),
      clientSide(*this, client),
      serverSide(*this, server),
      upward(proxy.pipes),
      downward(proxy.pipes) {
  client.fd = kj::mv(fd);
  if (sendBuffer != 0) option(client.fd, SOL_SOCKET, SO_SNDBUF, sendBuffer);
  attempt.startedAt = wallClock();
  opening = std::make_unique<Opening>(proxy, [this]() { late(); });
  proxy.loop.watch(client.fd, clientSide);
  opening->deadline.start(proxy.limits.headMilliseconds);
}

Session::~Session() {
  if (client.fd.get() >= 0) proxy.loop.unwatch(client.fd, clientSide);
  if (server.fd.get() >= 0) proxy.loop.unwatch(server.fd, serverSide);
  if (connected) --proxy.connected;
  proxy.roomBytes -= roomBytes;
}

// One of so many connections that it was given little room, and that reads: what it has more room for does not stay
// there. Without it a download goes by two kilobytes at a time.
void Session::giveRoom() {
  constexpr int most = 128 << 10;
  size_t more = sendBuffer;
  if (sendBuffer == 0 || sendBuffer >= most || proxy.roomBytes + more > proxy.limits.roomBytes) return;
  proxy.roomBytes += more;
  roomBytes += more;
  sendBuffer *= 2;
  option(client.fd, SOL_SOCKET, SO_SNDBUF, sendBuffer);
}

void Session::late() {
  switch (stage) {
    case Stage::Head:
      // Who opened a connection in advance and said nothing has asked for nothing.
      if (opening->read.empty()) return close("");
      return refuse(408, "timeout", "a request", "Its head did not come to an end in time.", "");
    case Stage::Resolving: return refuse(504, "timeout", attempt.host, "The name server did not answer in time.", "");
    case Stage::Dialing: return dialFailed(ETIMEDOUT);
    case Stage::Relaying:
    case Stage::Lingering: return close(attempt.reason);
  }
}

void Session::begin() {
  // The request is often there already.
  client.readable = client.writable = true;
  advance();
}

void Session::refuseForNumber() {
  client.writable = true;
  refuse(503, "too_many", "a connection", "The run has too many connections open.",
         "Close some, or open fewer at once.");
}

void Session::advance() {
  switch (stage) {
    case Stage::Head: return readHead();
    case Stage::Resolving:
    case Stage::Dialing:
      if (hungUp) return close("client_left");
      if (stage == Stage::Dialing && server.writable) return dialed();
      return;
    case Stage::Relaying: return relay();
    case Stage::Lingering: return linger();
  }
}

void Session::readHead() {
  char buffer[16 << 10];
  while (client.readable) {
    ssize_t n = recv(client.fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      client.readable = false;
      return;
    }
    if (n <= 0) {
      return close(opening->read.empty() ? "" : "malformed");
    }
    auto& read = opening->read;
    read.append(buffer, n);
    if (auto size = headSize(read)) {
      auto head = read.substr(0, size), rest = read.substr(size);
      return decide(head, rest);
    }
    if (isHopeless(read)) return decide(read, "");
    if (!mayWait()) return;
  }
}

// False when the session was refused: what waits takes memory, of which a gateway has little.
bool Session::mayWait() {
  auto before = opening->held;
  opening->count();
  if (opening->held <= before + shortHead || proxy.headBytes <= proxy.limits.headBytes ||
      opening->held <= 2 * shortHead)
    return true;
  refuse(503, "too_many", "a connection", "The run has too many long requests open that wait for something.",
         "Open fewer at once.");
  return false;
}

void Session::decide(std::string_view head, std::string_view rest) {
  auto parsed = parseRequest(head);
  if (auto malformed = std::get_if<Malformed>(&parsed)) {
    attempt.host = malformed->host;
    return refuse(malformed->status, "malformed", "a request that it can't read safely",
                  fmt::format("{}.", malformed->why),
                  "The gateway takes CONNECT host:port, and plain requests for http:// URLs.");
  }
  opening->request = std::move(std::get<Request>(parsed));
  std::string(rest).swap(opening->read);
  opening->request.head.shrink_to_fit();
  auto& target = opening->request.target;
  attempt.host = target.host;
  attempt.port = target.port;
  if (!mayWait()) return;
  auto verdict = proxy.rules.decide(target);
  if (!verdict.allowed) return refuse(verdict);
  attempt.allowed = true;
  if (!target.literal) return resolve();
  opening->addresses = {*target.literal};
  dialNext();
}

void Session::resolve() {
  auto& name = attempt.host;
  if (auto known = proxy.resolver.remembered(name)) return resolved(Resolver::Answer(*known));
  stage = Stage::Resolving;
  opening->deadline.start(proxy.limits.resolveMilliseconds);
  opening->question = proxy.resolver.ask(name, [this](const Resolver::Answer& answer) {
    if (hungUp) return close("client_left");
    resolved(Resolver::Answer(answer));
  });
}

void Session::resolved(const Resolver::Answer& answer) {
  if (answer.addresses.empty()) {
    return refuse(502, answer.noSuchName ? "no_such_name" : "unreachable", attempt.host,
                  fmt::format("Its name has no address: {}.", answer.error), "");
  }
  std::optional<Verdict> refusal;
  for (auto& address : answer.addresses) {
    auto verdict = proxy.rules.decideResolved(opening->request.target, address);
    if (verdict.allowed) {
      opening->addresses.push_back(address);
    } else if (!refusal) {
      refusal = verdict;
      if (attempt.address.empty()) attempt.address = address.toString();
    }
  }
  if (opening->addresses.empty()) return refuse(*refusal);
  attempt.address = "";
  // IPv6 first only where there is some: an address of the gateway's own outside of its links.
  bool preferV6 = std::any_of(proxy.rules.parts().own.begin(), proxy.rules.parts().own.end(),
                              [](auto& n) { return n.address.v6 && reachOf(n.address) == Reach::Public; });
  std::stable_sort(opening->addresses.begin(), opening->addresses.end(),
                   [&](auto& a, auto& b) { return (a.v6 == preferV6) > (b.v6 == preferV6); });
  dialNext();
}

void Session::dialNext() {
  stage = Stage::Dialing;
  auto now = proxy.loop.now();
  if (opening->dialUntil == 0) opening->dialUntil = now + 3 * proxy.limits.dialMilliseconds;
  for (;;) {
    if (server.fd.get() >= 0) {
      proxy.loop.unwatch(server.fd, serverSide);
      server = End();
    }
    if (opening->next == opening->addresses.size() || now >= opening->dialUntil) break;
    auto& address = opening->addresses[opening->next++];
    attempt.address = address.toString();
    int fd = socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      opening->lastError = errno;
      continue;
    }
    server.fd = kj::AutoCloseFd(fd);
    option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    keepAlive(fd);
    sockaddr_storage to;
    auto size = toSocketAddress(address, attempt.port, to);
    bool there = connect(fd, reinterpret_cast<sockaddr*>(&to), size) == 0;
    bool coming = !there && errno == EINPROGRESS;
    opening->lastError = there ? 0 : errno;
    // Not before: a socket that nobody connected looks as if it hung up.
    proxy.loop.watch(fd, serverSide);
    if (there) return startRelaying();
    if (!coming) continue;
    opening->deadline.start(std::min(proxy.limits.dialMilliseconds, opening->dialUntil - now));
    return;
  }
  int error = opening->lastError;
  bool late = error == ETIMEDOUT;
  refuse(late ? 504 : 502, late ? "timeout" : "unreachable", opening->request.target.toString(),
         fmt::format("It is allowed, but {} could not be reached: {}.", attempt.address, strerror(error)), "");
}

void Session::dialFailed(int error) {
  opening->lastError = error;
  dialNext();
}

void Session::dialed() {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(server.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return dialFailed(error);
  startRelaying();
}

void Session::startRelaying() {
  stage = Stage::Relaying;
  connected = true;
  opening->deadline.stop();
  ++proxy.connected;
  ++proxy.done.allowed;
  server.writable = true;
  auto& request = opening->request;
  if (request.connect) {
    downward.prepend(std::string(connectedAnswer));
  } else {
    plain = true;
    upward.prepend(std::move(request.head));
    answers = std::make_unique<AnswerReader>(request.upgrade);
    heldBack = request.upgrade;
    if (request.body == Body::Chunked) {
      upward.expectChunks();
    } else if (!request.upgrade) {
      upward.limit(request.bodyLength);
    }
  }
  // What came behind an upgrade's head waits, too.
  if (!heldBack) upward.feed(opening->read);
  if (!heldBack) opening = nullptr;
  relay();
}

// False when the session was closed.
bool Session::relayAnswerHead() {
  char buffer[16 << 10];
  while (server.readable) {
    ssize_t n = recv(server.fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      server.readable = false;
      break;
    }
    std::string out;
    if (n <= 0) {
      // Without an answer: an end like any other's.
      answers->end(out);
      downward.feed(out);
      answers = nullptr;
      return true;
    }
    auto state = answers->take(std::string_view(buffer, n), out);
    downward.feed(out);
    if (state == AnswerReader::State::More) continue;
    if (state == AnswerReader::State::Unasked) {
      close("protocol");
      return false;
    }
    if (state == AnswerReader::State::Switched) upward.feed(opening->read);
    // Not switched: the request was all that the client may say.
    if (state == AnswerReader::State::Plain && heldBack) upward.limit(0);
    heldBack = false;
    opening = nullptr;
    answers = nullptr;
    break;
  }
  return true;
}

void Session::relay() {
  if (answers && !relayAnswerHead()) return;
  // Before the answer has begun, only what was read of it goes down; before a 101, only the head goes up.
  End nothing;
  auto up = upward.run(heldBack ? nothing : client, server);
  auto down = downward.run(answers ? nothing : server, client);
  if (upward.violated()) return bodyBroken();
  if (downward.state() == Pump::State::Failed) return close("reset");
  if (hungUp && upward.state() != Pump::State::Open)
    return close(downward.state() == Pump::State::Open ? "client_left" : "");
  passEndsOn();
  if (downward.state() == Pump::State::Ended) {
    if (plain) return lingerAfterAnswer();
    if (upward.state() != Pump::State::Open) return close(upward.state() == Pump::State::Ended ? "" : "reset");
  }
  if (up == Pump::Progress::Unfinished || down == Pump::Progress::Unfinished) proxy.loop.again(clientSide);
}

void Session::bodyBroken() {
  // Halfway through an answer, nothing can be said any more.
  if (!answers || downward.moved() != 0) return close("malformed");
  proxy.loop.unwatch(server.fd, serverSide);
  server = End();
  refuse(400, "malformed", fmt::format("the body of a request to {}:{}", attempt.host, attempt.port),
         "It ended early, or its chunks are not framed as they have to be: the size in hexadecimal digits alone, no "
         "extensions, no trailers, each line with CR LF.",
         "");
}

// One side's end is the other's: each may go on talking.
void Session::passEndsOn() {
  bool clientEnded = upward.sawEnd() || halfClosed;
  if (upward.state() == Pump::State::Ended && clientEnded && !serverDone) {
    serverDone = true;
    shutdown(server.fd, SHUT_WR);
  }
  if (downward.state() == Pump::State::Ended && !clientDone) {
    clientDone = true;
    shutdown(client.fd, SHUT_WR);
  }
}

// A plain request is answered. The client may have sent another behind it, which nobody will read.
void Session::lingerAfterAnswer() {
  note("");
  proxy.loop.unwatch(server.fd, serverSide);
  server = End();
  startLingering();
}

void Session::startLingering() {
  stage = Stage::Lingering;
  if (!opening) opening = std::make_unique<Opening>(proxy, [this]() { late(); });
  opening->question = nullptr;
  opening->forget();
  opening->deadline.start(proxy.limits.lingerMilliseconds);
  linger();
}

void Session::linger() {
  if (hungUp) return close("");
  char buffer[16 << 10];
  while (client.readable) {
    ssize_t n = recv(client.fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      client.readable = false;
      return;
    }
    opening->discarded += std::max<ssize_t>(n, 0);
    if (n <= 0 || opening->discarded > mostDiscarded) return close("");
  }
}

void Session::refuse(const Verdict& verdict) {
  attempt.allowed = false;
  refuse(403, verdict.reason, opening->request.target.toString(), verdict.why, verdict.fix);
}

void Session::refuse(int status, std::string reason, const std::string& what, const std::string& why,
                     const std::string& fix) {
  auto answer = refusalAnswer(status, reason, what, why, fix);
  // It fits: nothing has been said to this client before. But for one of so many that it was given little room.
  auto n = std::max<ssize_t>(send(client.fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT), 0);
  if (auto rest = answer.substr(n); !rest.empty()) {
    option(client.fd, SOL_SOCKET, SO_SNDBUF, 64 << 10);
    send(client.fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  shutdown(client.fd, SHUT_WR);
  clientDone = true;
  note(std::move(reason));
  startLingering();
}

void Session::note(std::string reason) {
  if (noted) return;
  noted = true;
  if (attempt.host.empty() && reason.empty()) return;
  attempt.reason = std::move(reason);
  attempt.bytesUp = up();
  attempt.bytesDown = down();
  attempt.endedAt = wallClock();
  proxy.done.bytesUp += attempt.bytesUp;
  proxy.done.bytesDown += attempt.bytesDown;
  if (!attempt.allowed) ++proxy.done.denied;
  proxy.journal.note(attempt);
}

void Session::close(std::string reason) {
  // What came so far is not all: a client must not take it for that.
  if (reason == "reset" && !clientDone) {
    struct linger now {
      1, 0
    };
    setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  note(std::move(reason));
  proxy.ended(*this);
}

}  // namespace oc::gateway
