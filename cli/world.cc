#include "world.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>

#include "base/procfs.h"
#include "client.h"
#include "failure.h"
#include "ui/times.h"

namespace oc::cli {

namespace {

bool isSet(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && value[0] != '\0';
}

Look lookOfTerminal(const Places& places) {
  Look look;
  look.terminal = isatty(STDOUT_FILENO) == 1;
  const char* kind = getenv("TERM");
  look.colour = look.terminal && !isSet("NO_COLOR") && (kind == nullptr || strcmp(kind, "dumb") != 0);
  struct winsize size = {};
  if (look.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) look.width = size.ws_col;
  look.home = places.home;
  look.now = nowMilliseconds();
  return look;
}

// KJ ignores SIGPIPE, since a socket's other end may go away. A reader that has seen enough of our output (`| head`)
// is no failure to report: we end as any program would.
void writeOut(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE) {
      signal(SIGPIPE, SIG_DFL);
      raise(SIGPIPE);
    }
    if (n < 0) {
      if (fd == STDERR_FILENO) return;
      throw Failure{No, {"output_failed", fmt::format("standard output: {}", strerror(errno)), ""}};
    }
    bytes.remove_prefix(n);
  }
}

// What is made only when a command needs the daemon.
struct Loop {
  kj::Maybe<kj::AsyncIoContext> io;
  kj::AsyncIoContext& get() {
    if (io == nullptr) io = kj::setupAsyncIo();
    return KJ_ASSERT_NONNULL(io);
  }
};

}  // namespace

std::string readAtMost(int fd, size_t most) {
  std::string result;
  char buffer[65536];
  while (result.size() < most) {
    ssize_t n;
    KJ_SYSCALL_HANDLE_ERRORS(n = ::read(fd, buffer, std::min(sizeof(buffer), most - result.size()))) {
      default: KJ_FAIL_SYSCALL("read", error);
    }
    if (n == 0) break;
    result.append(buffer, n);
  }
  return result;
}

std::unique_ptr<World> makeRealWorld() {
  auto world = std::make_unique<World>();
  auto loop = std::make_shared<Loop>();
  auto places = findPlaces();
  world->places = places;
  world->look = lookOfTerminal(places);
  world->programs = ownDirectory();
  world->out = [](std::string_view bytes) { writeOut(STDOUT_FILENO, bytes); };
  world->err = [](std::string_view bytes) { writeOut(STDERR_FILENO, bytes); };
  world->readInput = [](size_t limit) { return readAtMost(STDIN_FILENO, limit); };
  world->io = [loop]() -> kj::AsyncIoContext& { return loop->get(); };
  world->connect = [loop, places]() { return connectToDaemon(loop->get(), places); };
  world->interrupted = [loop, captured = false]() mutable -> kj::Promise<void> {
    if (!captured) kj::UnixEventPort::captureSignal(SIGINT);
    captured = true;
    return loop->get().unixEventPort.onSignal(SIGINT).then([](siginfo_t) {});
  };
  return world;
}

}  // namespace oc::cli
