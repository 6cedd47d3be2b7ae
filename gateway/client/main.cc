// open-conduit-toolbelt: what a run's programs reach its toolbelt with.
#include <signal.h>
#include <stdio.h>

#include <string>
#include <vector>

#include "bridge.h"

namespace {

constexpr const char* usage =
    "usage: open-conduit-toolbelt mcp                         an MCP server on standard input and output\n"
    "       open-conduit-toolbelt call OPERATION [JSON]       calls one operation and prints its result\n"
    "       open-conduit-toolbelt git-credential get          git's credential helper\n"
    "\n"
    "Works inside of a run, by OPEN_CONDUIT_TOOLBELT and OPEN_CONDUIT_TOOLBELT_TOKEN.\n";

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "--version") {
    printf("open-conduit-toolbelt " OPEN_CONDUIT_VERSION "\n");
    return 0;
  }
  if (words.size() == 1 && words[0] == "mcp") return oc::client::bridgeMcp();
  if (!words.empty()) {
    std::vector<std::string> rest(words.begin() + 1, words.end());
    if (words[0] == "call") return oc::client::callOperation(rest);
    if (words[0] == "git-credential") return oc::client::gitCredential(rest);
  }
  bool asked = words.size() == 1 && (words[0] == "--help" || words[0] == "-h");
  fputs(usage, asked ? stdout : stderr);
  return asked ? 0 : 2;
}
