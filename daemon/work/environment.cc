#include "environment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "base/fd.h"

extern char** environ;

namespace oc::work {

namespace {

// What of the operator's environment says who and where one is, and how text looks; nothing that runs or loads code.
constexpr std::string_view allowed[] = {"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "LC_ALL", "LC_CTYPE"};

// A sandboxed agent's programs come from the system's folders alone: its parent looks for bash there, outside the sandbox, and
// a folder that an agent may write must not come first.
constexpr const char* systemPath = "/usr/local/bin:/usr/bin:/bin";

constexpr size_t maxSecret = 64u << 10;

Refusal unavailable(const std::string& name, const std::string& why, const std::string& fix) {
  return {"secret_unavailable", fmt::format("the secret {} cannot be read: {}", name, why), fix};
}

OrRefusal<std::string> readSecretFile(const std::string& name, const std::string& path) {
  int raw = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (raw < 0) return unavailable(name, fmt::format("{}: {}", path, strerror(errno)), "make the file, with mode 0600");
  kj::AutoCloseFd fd(raw);
  struct stat stats;
  KJ_SYSCALL(fstat(raw, &stats), path);
  if (!S_ISREG(stats.st_mode) || stats.st_uid != geteuid() || (stats.st_mode & 0077) != 0) {
    return unavailable(name, path + " is not a file of yours that only you can read", "chmod 600 " + path);
  }
  if (static_cast<size_t>(stats.st_size) > maxSecret) {
    return unavailable(name, path + " is larger than 64 KiB", "a secret is a token or a key; name the right file");
  }
  auto value = readAll(raw, maxSecret);
  if (value.ends_with('\n')) value.pop_back();
  return value;
}

}  // namespace

Environment ownEnvironment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals != std::string_view::npos) result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

OrRefusal<std::string> readSecret(const std::string& name, const std::string& reference, const Environment& own) {
  if (reference.starts_with("file:")) return readSecretFile(name, reference.substr(5));
  if (reference.starts_with("env:")) {
    auto found = own.find(reference.substr(4));
    if (found == own.end()) {
      return unavailable(name, reference.substr(4) + " is not set in the daemon's environment",
                         "set it where the daemon is started");
    }
    return found->second;
  }
  return unavailable(name, "this version cannot read " + reference.substr(0, reference.find(':')) + " references",
                     "use a file: reference to a file with mode 0600");
}

OrRefusal<Environment> makeEnvironment(const EnvironmentRequest& request, const Environment& own) {
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
  for (auto& [secret, variable] : request.binding.secretEnv) {
    auto reference = request.scope.secretRefs.find(secret);
    if (reference == request.scope.secretRefs.end()) {
      return unavailable(secret, "the scope does not define it", "add it to the scope's secret_refs");
    }
    auto value = readSecret(secret, reference->second, own);
    if (!value.ok()) return value.refusal();
    result[variable] = value.value();
  }
  return result;
}

}  // namespace oc::work
