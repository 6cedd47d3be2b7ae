#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace oc::gateway {

namespace {

// A larger pipe saves system calls; the kernel lets an ordinary user have 64 MiB of them and makes the rest small.
constexpr size_t pipeBytes = 256 << 10;
constexpr size_t mostSparePipes = 16;
// One direction's share before others get theirs.
constexpr size_t turnBytes = 1 << 20;
constexpr size_t chunkBytes = 32 << 10;
// Without a pipe. Little, since many may have to wait with it.
constexpr size_t copyBytes = 4 << 10;

bool wouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

void End::note(uint32_t events) {
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable = true;
}

std::unique_ptr<PipePool::Pipe> PipePool::take() {
  if (!spare.empty()) {
    auto pipe = std::move(spare.back());
    spare.pop_back();
    return pipe;
  }
  int fds[2];
  if (made == most || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) return nullptr;
  ++made;
  auto pipe = std::make_unique<Pipe>(Pipe{kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])});
  fcntl(fds[1], F_SETPIPE_SZ, pipeBytes);  // refused: it works with the size that it has
  return pipe;
}

void PipePool::giveBack(std::unique_ptr<Pipe> pipe) {
  if (spare.size() < mostSparePipes) return spare.push_back(std::move(pipe));
  drop(std::move(pipe));
}

void PipePool::drop(std::unique_ptr<Pipe> pipe) {
  if (pipe) --made;
}

Pump::~Pump() { pool.drop(std::move(pipe)); }

void Pump::prepend(std::string bytes) {
  uncounted += bytes.size();
  pending += bytes;
}

void Pump::feed(std::string_view bytes) {
  if (chunks) {
    bytes = bytes.substr(0, chunks->take(bytes));
    if (chunks->broken()) broken = true, fail();
  }
  if (left) {
    bytes = bytes.substr(0, std::min<uint64_t>(*left, bytes.size()));
    *left -= bytes.size();
  }
  pending.append(bytes);
}

bool Pump::fail() {
  current = State::Failed;
  pool.drop(std::move(pipe));
  return false;
}

void Pump::finish() {
  if (held == 0 && pipe) pool.giveBack(std::move(pipe));
}

// Whether everything is written.
bool Pump::write(End& to) {
  while (at < pending.size()) {
    if (!to.writable) return false;
    ssize_t n = send(to.fd, pending.data() + at, pending.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && wouldBlock()) return to.writable = false;
    if (n < 0) return fail();
    at += n;
    auto ours = std::min<size_t>(uncounted, n);
    uncounted -= ours;
    total += n - ours;
  }
  // Assigning an empty string would keep the memory.
  if (!pending.empty()) std::string().swap(pending), at = 0;
  while (held > 0) {
    if (!to.writable) return false;
    ssize_t n = splice(pipe->out, nullptr, to.fd, nullptr, held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && wouldBlock()) return to.writable = false;
    if (n <= 0) return fail();
    held -= n;
    total += n;
  }
  return true;
}

// Whether something came.
bool Pump::fill(End& from) {
  if (!from.readable) return false;
  if (chunks) return fillByCopying(from, chunkBytes);
  if (!pipe) pipe = pool.take();
  if (!pipe) return fillByCopying(from, left ? std::min<uint64_t>(*left, copyBytes) : copyBytes);
  for (;;) {
    size_t wanted = left ? std::min<uint64_t>(*left, pipeBytes) : pipeBytes;
    ssize_t n = splice(from.fd, nullptr, pipe->in, nullptr, wanted, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n < 0 && errno == EINTR) continue;
    // The pipe is empty, so it is the source that would block.
    if (n < 0 && wouldBlock()) return from.readable = false;
    if (n < 0) return fail();
    if (n == 0) end = true;
    held = n;
    if (left) *left -= n;
    return n > 0;
  }
}

bool Pump::fillByCopying(End& from, size_t most) {
  char buffer[chunkBytes];
  for (;;) {
    ssize_t n = recv(from.fd, buffer, most, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && wouldBlock()) return from.readable = false;
    if (n < 0) return fail();
    if (n == 0) end = true;
    feed(std::string_view(buffer, n));
    return n > 0 && current == State::Open;
  }
}

Pump::Progress Pump::run(End& from, End& to) {
  for (size_t before = total; current == State::Open;) {
    if (!write(to)) return Progress::Waits;
    bool said = (left && *left == 0) || (chunks && chunks->ended());
    if (said || end) {
      // A stream that ends before what it announced did is no end.
      broken = !said && (left || chunks);
      current = broken ? State::Failed : State::Ended;
      break;
    }
    if (total - before >= turnBytes) return Progress::Unfinished;
    if (!fill(from) && !end) break;
  }
  finish();
  return Progress::Waits;
}

}  // namespace oc::gateway
