// open-conduit-toolbelt: the one program of ours inside of a run's container, and what
// every run reaches its toolbelt with. Static, mounted read-only, so it works in any
// image. Each command is a file of its own; add one here by its name, its line of help, and its function.
#include <signal.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "bridge.h"
#include "command.h"
#include "enter.h"
#include "probe.h"
#include "proto/rpc.h"

namespace {

using oc::gateway::Arguments;

struct Command {
  std::string_view name;
  const char* summary;
  int (*run)(const Arguments& arguments);
};

// The words of a run's programs.
int mcp(const Arguments& words) {
  if (!words.empty()) oc::fail("mcp takes nothing more");
  return oc::client::bridgeMcp();
}

const Command commands[] = {
    {"enter", "the container's first process: secrets, mounts, ports, then the agent", oc::gateway::enter},
    {"probe", "tries what a run must not reach, and what it must, and prints it as JSON", oc::gateway::probe},
    {"mcp", "the run's toolbelt as an MCP server on standard input and output", mcp},
    {"call", "OPERATION [JSON]: calls one operation of the toolbelt and prints its result", oc::client::callOperation},
    {"git-credential", "get: git's credential helper", oc::client::gitCredential},
};

int help() {
  printf("open-conduit-toolbelt %s: what Open Conduit brings into a run's container\n\n", OPEN_CONDUIT_VERSION);
  for (auto& command : commands) printf("  %-16s %s\n", std::string(command.name).c_str(), command.summary);
  printf("\nopen-conduit-toolbelt COMMAND --help says more.\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  oc::initLog("open-conduit-toolbelt");
  signal(SIGPIPE, SIG_IGN);
  Arguments words(argv + 1, argv + argc);
  if (words.empty() || words[0] == "--help") return help();
  if (words[0] == "--version") return printf("open-conduit-toolbelt %s\n", OPEN_CONDUIT_VERSION), 0;
  for (auto& command : commands) {
    if (words[0] != command.name) continue;
    int code = oc::gateway::exitOurs;
    auto failed = kj::runCatchingExceptions([&]() { code = command.run(Arguments(words.begin() + 1, words.end())); });
    KJ_IF_MAYBE (exception, failed) oc::logError("{}", oc::describe(*exception));
    return code;
  }
  oc::logError("there is no command \"{}\"; see --help", words[0]);
  return oc::gateway::exitOurs;
}
