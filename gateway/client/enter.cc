#include "enter.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "child.h"
#include "forwarder.h"
#include "gateway/socket_file.h"
#include "mounts.h"
#include "secrets.h"

namespace oc::gateway {

namespace {

constexpr const char* help =
    "open-conduit-toolbelt enter [OPTION]… -- COMMAND…\n"
    "\n"
    "The first process of a run's container: prepares what the agent needs, starts it, passes signals on, reaps orphans,\n"
    "and forwards its connections to the gateway for as long as it lives.\n"
    "\n"
    "  --secrets FILE               a JSON object {\"NAME\": \"value\"}: read, deleted, put into COMMAND's environment\n"
    "  --mount DEVICE:INODE:PATH    PATH must be this file or directory (decimal, as stat has them); any number of times\n"
    "  --forward PORT:SOCKET        forwards 127.0.0.1:PORT to a Unix socket; any number of times\n"
    "  --wait-ms N                  milliseconds for those sockets to accept connections (10000)\n"
    "\n"
    "Exit codes: COMMAND's, 128 and a signal's number when one ended it, 127 COMMAND isn't there, 126 it can't be\n"
    "executed, 125 something of the above failed, and a line on standard error says what: then COMMAND did not start.\n";

struct Forward {
  uint16_t port;
  std::string socketPath;
};

struct Options {
  std::string secrets;
  std::vector<PlannedMount> mounts;
  std::vector<Forward> forwards;
  int64_t waitMilliseconds = 10'000;
  std::vector<std::string> command;
  bool help = false;
};

Forward readForward(std::string_view text) {
  Forward forward{};
  auto end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, forward.port);
  bool good = error == std::errc() && forward.port != 0 && end - stop > 1 && stop[0] == ':' && stop[1] == '/';
  if (!good) fail(fmt::format("--forward {} is not PORT:SOCKET", text));
  forward.socketPath = std::string(stop + 1, end);
  unixAddress(forward.socketPath);
  return forward;
}

int64_t readMilliseconds(std::string_view text) {
  int64_t value = 0;
  auto end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value <= 0)
    fail(fmt::format("--wait-ms {} is no number of milliseconds", text));
  return value;
}

Options readOptions(const Arguments& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto& word = arguments[i];
    if (word == "--help") return options.help = true, options;
    if (word == "--") {
      options.command.assign(arguments.begin() + i + 1, arguments.end());
      break;
    }
    if (i + 1 == arguments.size()) fail(fmt::format("enter: {} is no option with a value; see enter --help", word));
    auto& value = arguments[++i];
    if (word == "--secrets") {
      options.secrets = value;
    } else if (word == "--mount") {
      options.mounts.push_back(readPlannedMount(value));
    } else if (word == "--forward") {
      options.forwards.push_back(readForward(value));
    } else if (word == "--wait-ms") {
      options.waitMilliseconds = readMilliseconds(value);
    } else {
      fail(fmt::format("enter: there is no option {}; see enter --help", word));
    }
  }
  if (options.command.empty()) fail("enter: there is no command after \"--\"; see enter --help");
  return options;
}

// What is here stays ours: another process of the container has the same user, and would look into our memory, and our
// descriptors, else.
void hideFromOthers() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) fail(fmt::format("PR_SET_DUMPABLE: {}", strerror(errno)));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail(fmt::format("PR_SET_NO_NEW_PRIVS: {}", strerror(errno)));
  signal(SIGPIPE, SIG_IGN);
}

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// 0, or why it doesn't accept.
int tryConnect(const std::string& path) {
  kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  auto address = unixAddress(path);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return 0;
  return errno;
}

// Nothing, or the signal that asked to end meanwhile.
int waitForGateway(const Options& options, int signals) {
  constexpr int pause = 5;
  auto last = now() + options.waitMilliseconds;
  for (auto& forward : options.forwards) {
    while (int error = tryConnect(forward.socketPath)) {
      if (now() >= last) {
        fail(fmt::format("the gateway did not accept connections at {} within {} ms: {}", forward.socketPath,
                         options.waitMilliseconds, strerror(error)));
      }
      pollfd asked{signals, POLLIN, 0};
      signalfd_siginfo info;
      if (poll(&asked, 1, pause) == 1 && read(signals, &info, sizeof(info)) == sizeof(info)) {
        auto number = static_cast<int>(info.ssi_signo);
        if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT) return number;
      }
    }
  }
  return 0;
}

}  // namespace

int enter(const Arguments& arguments) {
  auto options = readOptions(arguments);
  if (options.help) return fputs(help, stdout), 0;
  // It kills every other process that it sees in the end.
  if (getpid() != 1) fail("enter: this is for the first process of a container");
  hideFromOthers();
  std::unique_ptr<Secrets> secrets;
  if (!options.secrets.empty()) secrets = std::make_unique<Secrets>(options.secrets);
  for (auto& mount : options.mounts) checkMount(mount);

  auto signals = takeSignals();
  Loop loop;
  std::vector<std::unique_ptr<Forwarder>> forwarders;
  for (auto& forward : options.forwards) {
    forwarders.push_back(std::make_unique<Forwarder>(loop, forward.port, forward.socketPath));
  }
  if (int number = waitForGateway(options, signals)) return 128 + number;

  Child child(loop, signals, options.command, secrets.get());
  secrets = nullptr;
  while (!child.ended()) loop.turn(-1);
  endAllOthers();
  return child.exitCode();
}

}  // namespace oc::gateway
