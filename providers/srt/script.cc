#include "script.h"

#include <ctype.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>

#include "base/text.h"

namespace oc::srt {

namespace {

// MAX_ARG_STRLEN of Linux with 4 KiB pages: the longest argument or variable that execve takes.
constexpr size_t maxWord = 128u << 10;
// execve takes a quarter of the stack's limit (8 MiB by default) for all of them; some is left for srt's own variables.
constexpr size_t maxTotal = 1900u << 10;

bool isShellName(const std::string& name) {
  if (name.empty() || isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return (isalnum(c) && c < 128) || c == '_'; });
}

// bash refuses to set these.
bool isReadOnlyInBash(const std::string& name) {
  for (auto known : {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}) {
    if (name == known) return true;
  }
  return false;
}

// What srt sets so that the agent finds its proxy. NO_PROXY may be set: it opens nothing.
bool isProxy(const std::string& name) {
  for (auto known : {"http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "rsync_proxy", "grpc_proxy"}) {
    if (strcasecmp(name.c_str(), known) == 0) return true;
  }
  return false;
}

Refusal denied(std::string what, std::string fix) { return {"sandbox_denied", std::move(what), std::move(fix)}; }

}  // namespace

std::optional<Refusal> checkCommand(const kit::AgentCommand& command) {
  size_t total = 0;
  for (auto& [name, value] : command.environment) {
    if (!isShellName(name) || isReadOnlyInBash(name)) {
      return denied(fmt::format("the variable \"{}\" cannot be set in a sandbox", printable(shortened(name, 200))),
                    "choose a name of letters, digits and underscores");
    }
    if (isProxy(name)) {
      return denied(fmt::format("the variable {} is srt's, whose proxy is the only way out", name),
                    "remove it from the binding's env, and list hosts in network.allow");
    }
    size_t size = name.size() + value.size() + 2;
    if (size > maxWord) {
      return denied(fmt::format("the variable {} has {} bytes; a program can be given {}", name, value.size(), maxWord),
                    "put it into a file");
    }
    total += size;
  }
  for (auto& word : command.command) {
    if (word.size() + 1 > maxWord) {
      return denied(fmt::format("a word of the command has {} bytes; a program can be given {}", word.size(), maxWord),
                    "put it into a file");
    }
    total += word.size() + 1;
  }
  if (total > maxTotal) {
    return denied(
        fmt::format("the command and its environment have {} bytes; a program can be given {}", total, maxTotal),
        "put them into files");
  }
  return std::nullopt;
}

std::string agentScript(const kit::AgentCommand& command, const std::vector<std::string>& ours) {
  std::string script;
  for (auto& name : ours) script += "unset " + name + "\n";
  for (auto& [name, value] : command.environment) script += "export " + name + "=" + shellQuote(value) + "\n";
  script += "cd " + shellQuote(command.directory) + " || exit 126\nunset OLDPWD\n";
  script += "exec --";
  for (auto& word : command.command) script += " " + shellQuote(word);
  return script + "\n";
}

}  // namespace oc::srt
