#include "enter.h"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "child.h"
#include "hand_over.h"
#include "gateway/socket_file.h"
#include "mounts.h"
#include "secrets.h"

namespace oc::gateway {

namespace {

constexpr const char* help =
    "open-conduit-toolbelt enter [OPTION]… -- COMMAND…\n"
    "open-conduit-toolbelt enter [OPTION]… --start FILE\n"
    "\n"
    "The first process of a run's container: prepares what the agent needs, gives the gateway the ports that lead to it,\n"
    "starts the agent, passes signals on, and reaps orphans.\n"
    "\n"
    "  --start FILE                 has COMMAND, and variables for its environment, each text ended by a NUL: NAME=value any\n"
    "                               number of times, an empty one, then COMMAND's words; read when the gateway has taken the\n"
    "                               ports, and deleted\n"
    "  --secrets FILE               a JSON object {\"NAME\": \"value\"}: read then, deleted, put into COMMAND's\n"
    "                               environment\n"
    "  --mount DEVICE:INODE:PATH    PATH must be this file or directory (decimal, as stat has them); any number of times\n"
    "  --port PORT:SOCKET           gives 127.0.0.1:PORT to the gateway that waits at a Unix socket; any number of times\n"
    "  --wait-ms N                  milliseconds for the gateway to take them (10000; 0: for ever)\n"
    "\n"
    "Exit codes: COMMAND's, 128 and a signal's number when one ended it, 127 COMMAND isn't there, 126 it can't be\n"
    "executed, 125 something of the above failed, and a line on standard error says what: then COMMAND did not start.\n";

struct Port {
  uint16_t number;
  std::string socketPath;
};

struct Options {
  std::string secrets, start;
  std::vector<PlannedMount> mounts;
  std::vector<Port> ports;
  int64_t waitMilliseconds = 10'000;
  std::vector<std::string> command;
  bool help = false;
};

Port readPort(std::string_view text) {
  Port port{};
  auto end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, port.number);
  bool good = error == std::errc() && port.number != 0 && end - stop > 1 && stop[0] == ':' && stop[1] == '/';
  if (!good) fail(fmt::format("--port {} is not PORT:SOCKET", text));
  port.socketPath = std::string(stop + 1, end);
  unixAddress(port.socketPath);
  return port;
}

int64_t readMilliseconds(std::string_view text) {
  int64_t value = 0;
  auto end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0)
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
    } else if (word == "--start") {
      options.start = value;
    } else if (word == "--mount") {
      options.mounts.push_back(readPlannedMount(value));
    } else if (word == "--port") {
      options.ports.push_back(readPort(value));
    } else if (word == "--wait-ms") {
      options.waitMilliseconds = readMilliseconds(value);
    } else {
      fail(fmt::format("enter: there is no option {}; see enter --help", word));
    }
  }
  if (!options.start.empty() && !options.command.empty()) fail("enter: a command, and --start, which has one");
  if (options.start.empty() && options.command.empty())
    fail("enter: there is no command after \"--\"; see enter --help");
  return options;
}

// What is here stays ours: another process of the container has the same user, and would look into our memory, and our
// descriptors, else.
void hideFromOthers() {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) fail(fmt::format("PR_SET_DUMPABLE: {}", strerror(errno)));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail(fmt::format("PR_SET_NO_NEW_PRIVS: {}", strerror(errno)));
  signal(SIGPIPE, SIG_IGN);
}

int64_t deadlineIn(int64_t milliseconds) {
  if (milliseconds == 0) return std::numeric_limits<int64_t>::max();
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000 + milliseconds;
}

// All ports listen before the gateway is asked for: a port that is taken is no matter of its time. Nothing, or the
// signal that asked to end meanwhile.
int handOverPorts(const Options& options, int signals) {
  std::vector<kj::AutoCloseFd> listeners;
  for (auto& port : options.ports) listeners.push_back(listenAtPort(port.number));
  auto deadline = deadlineIn(options.waitMilliseconds);
  for (size_t i = 0; i < listeners.size(); ++i) {
    if (int number = handOver(kj::mv(listeners[i]), options.ports[i].socketPath, deadline, signals)) return number;
  }
  return 0;
}

std::unique_ptr<Child> start(Loop& loop, int signals, const Options& options) {
  std::unique_ptr<Secrets> secrets;
  if (!options.secrets.empty()) secrets = std::make_unique<Secrets>(options.secrets);
  std::unique_ptr<StartFile> file;
  if (!options.start.empty()) file = std::make_unique<StartFile>(options.start);
  auto& command = file ? file->command() : options.command;
  return std::make_unique<Child>(loop, signals, Child::Image{command, file.get(), secrets.get()});
}

}  // namespace

int enter(const Arguments& arguments) {
  auto options = readOptions(arguments);
  if (options.help) return fputs(help, stdout), 0;
  // It kills every other process that it sees in the end.
  if (getpid() != 1) fail("enter: this is for the first process of a container");
  hideFromOthers();
  for (auto& mount : options.mounts) checkMount(mount);

  auto signals = takeSignals();
  Loop loop;
  if (int number = handOverPorts(options, signals)) return 128 + number;

  // Not before: the container may have been started long before it is known what for.
  auto child = start(loop, signals, options);
  while (!child->ended()) loop.turn(-1);
  endAllOthers();
  return child->exitCode();
}

}  // namespace oc::gateway
