#include "environment.h"

#include <string_view>

namespace oc::work {

namespace {

// What of the operator's environment says who and where one is, and how text looks; nothing that runs or loads code.
constexpr std::string_view allowed[] = {"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "LC_ALL", "LC_CTYPE"};

// A sandboxed agent's programs come from the system's folders alone: its parent looks for bash there, outside the
// sandbox, and a folder that an agent may write must not come first.
constexpr const char* systemPath = "/usr/local/bin:/usr/bin:/bin";

}  // namespace

Environment makeEnvironment(const EnvironmentRequest& request, const Environment& own) {
  Environment result;
  for (auto name : allowed) {
    auto found = own.find(std::string(name));
    if (found != own.end()) result[found->first] = found->second;
  }
  result["HOME"] = request.places.home;
  result["SHELL"] = "/bin/sh";
  result["TERM"] = "dumb";
  bool sandboxed = request.binding.sandboxKind() != "none";
  auto ownPath = own.find("PATH");
  result["PATH"] = sandboxed || ownPath == own.end() ? systemPath : ownPath->second;

  result["OPEN_CONDUIT_TITLE"] = request.title;
  result["OPEN_CONDUIT_BODY_FILE"] = request.bodyFile;
  result["OPEN_CONDUIT_WORK"] = request.work;
  result["OPEN_CONDUIT_RUN"] = request.run;
  result["OPEN_CONDUIT_BRANCH"] = request.branch;
  // Without a terminal, a question would wait for ever.
  result["GIT_TERMINAL_PROMPT"] = "0";

  for (auto& [name, value] : request.added) result[name] = value;
  for (auto& [name, value] : request.binding.env) result[name] = value;
  return result;
}

}  // namespace oc::work
