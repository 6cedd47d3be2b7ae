#include "hand_over.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/descriptor_passing.h"
#include "base/error.h"
#include "gateway/address.h"
#include "gateway/socket_file.h"

namespace oc::gateway {

namespace {

constexpr int backlog = 4096;
constexpr int pauseMilliseconds = 5;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Connected, or none with an errno.
kj::AutoCloseFd connectTo(const std::string& path) {
  kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto address = unixAddress(path);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) return kj::AutoCloseFd();
  return fd;
}

// Until `fd` (none: -1) can be read, or the time is over. Returns the number of a signal that asks to end, or 0.
int waitFor(int fd, int milliseconds, int signals) {
  pollfd asked[] = {{signals, POLLIN, 0}, {fd, POLLIN, 0}};
  signalfd_siginfo info;
  if (poll(asked, 2, milliseconds) < 1 || asked[0].revents == 0) return 0;
  if (read(signals, &info, sizeof(info)) != sizeof(info)) return 0;
  auto number = static_cast<int>(info.ssi_signo);
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT ? number : 0;
}

// 1 when it was taken, 0 when the other side went away, -1 when there is no answer yet.
int answerOf(int giver) {
  char byte;
  ssize_t n = recv(giver, &byte, 1, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return -1;
  return n == 1;
}

}  // namespace

kj::AutoCloseFd listenAtPort(uint16_t port) {
  int fd;
  KJ_SYSCALL(fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd listener(fd);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage address;
  auto size = toSocketAddress(*parseAddress("127.0.0.1"), port, address);
  bool listens = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd, backlog) == 0;
  if (!listens) fail(fmt::format("can't listen at 127.0.0.1:{}: {}", port, strerror(errno)));
  return listener;
}

int handOver(kj::AutoCloseFd listener, const std::string& path, int64_t deadline, int signals) {
  kj::AutoCloseFd giver;
  int error = 0;
  for (int64_t left; (left = deadline - now()) > 0;) {
    if (giver.get() < 0) {
      giver = connectTo(path);
      error = errno;
      if (giver.get() >= 0 && !sendDescriptor(giver, listener)) giver = nullptr;
    }
    if (giver.get() < 0) {
      if (int number = waitFor(-1, pauseMilliseconds, signals)) return number;
      continue;
    }
    if (int number = waitFor(giver, static_cast<int>(std::min<int64_t>(left, 1000)), signals)) return number;
    int answer = answerOf(giver);
    if (answer == 1) return 0;
    if (answer == 0) fail(fmt::format("the gateway did not take the listening socket at {}", path));
  }
  fail(fmt::format("the gateway did not take the listening socket at {} in time: {}", path,
                   giver.get() < 0 ? strerror(error) : "it does not answer"));
}

}  // namespace oc::gateway
