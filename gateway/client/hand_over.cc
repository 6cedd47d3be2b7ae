#include "hand_over.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

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

// Tells of files that are made in a folder: the gateway's socket may come hours later, and nothing is asked until then.
// Where the system has none left for this user, it is asked for every few milliseconds.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder) : fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (fd.get() >= 0 && inotify_add_watch(fd, folder.c_str(), IN_CREATE | IN_MOVED_TO) < 0) fd = nullptr;
  }

  // Until something came or `left` milliseconds are over; a signal's number, or 0.
  int wait(int64_t left, int signals) {
    bool asks = fd.get() < 0 || eager > 0;
    if (eager > 0) --eager;
    int number = waitFor(fd, asks ? pauseMilliseconds : static_cast<int>(std::min<int64_t>(left, hour)), signals);
    char events[4096];
    while (fd.get() >= 0 && read(fd, events, sizeof(events)) > 0) eager = 200;
    return number;
  }

 private:
  static constexpr int64_t hour = 3'600'000;
  kj::AutoCloseFd fd;
  int eager = 0;  // a socket's file is there a moment before somebody listens at it
};

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
  std::optional<FolderWatch> watch;
  int error = 0;
  for (int64_t left; (left = deadline - now()) > 0;) {
    if (giver.get() < 0) {
      giver = connectTo(path);
      error = errno;
      if (giver.get() >= 0 && !sendDescriptor(giver, listener)) giver = nullptr;
    }
    if (giver.get() < 0 && !watch) {
      watch.emplace(path.substr(0, path.rfind('/') + 1));  // and once more: it may have come just before
      continue;
    }
    if (giver.get() < 0) {
      if (int number = watch->wait(left, signals)) return number;
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
