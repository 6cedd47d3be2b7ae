#include "find_claude.h"

#include <fmt/format.h>
#include <kj/exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/paths.h"
#include "base/text.h"
#include "daemon/sandbox/system_paths.h"

namespace oc::work {

namespace {

constexpr const char* howToGet =
    "install Claude Code and name its program in settings.extensions.claude.program, or put it in the daemon's PATH";

bool isProgram(const std::string& path) {
  struct stat stats;
  return stat(path.c_str(), &stats) == 0 && S_ISREG(stats.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string resolvedOr(const std::string& path) {
  try {
    return resolvePath(path);
  } catch (const kj::Exception&) {
    return path;
  }
}

std::vector<std::string> candidates(const Places& places, const Environment& own) {
  std::vector<std::string> result;
  auto path = own.find("PATH");
  std::string all = path == own.end() ? "" : path->second;
  for (size_t at = 0; at < all.size();) {
    auto end = std::min(all.find(':', at), all.size());
    if (all[at] == '/') result.push_back(normalizePath(all.substr(at, end - at)) + "/claude");
    at = end + 1;
  }
  for (auto& directory : {places.home + "/.local/bin", std::string("/usr/local/bin"), std::string("/usr/bin")}) {
    result.push_back(directory + "/claude");
  }
  return result;
}

// The name, what its links lead through, and where they end.
std::vector<std::string> stations(const std::string& path) {
  std::vector<std::string> all = {path};
  std::string at = path;
  for (int links = 0; links < 40; ++links) {
    char target[4096];
    auto n = readlink(at.c_str(), target, sizeof(target));
    if (n <= 0 || n == sizeof(target)) break;
    std::string to(target, n);
    at = normalizePath(to[0] == '/' ? to : at.substr(0, at.rfind('/')) + "/" + to);
    all.push_back(at);
  }
  all.push_back(resolvedOr(path));
  return all;
}

bool liesIn(const std::vector<std::string>& all, const std::string& directory) {
  auto real = resolvedOr(directory);
  for (auto& path : all) {
    if (isAtOrUnder(path, directory) || isAtOrUnder(path, real)) return true;
  }
  return false;
}

OrRefusal<bool> checkUnwritten(const config::Config& config, const Places& places, const std::string& path) {
  auto all = stations(path);
  auto denied = [&path](const std::string& who) {
    return Refusal{
        "sandbox_denied", fmt::format("{} could have been written by an agent: {}", path, who),
        "keep claude where no policy lets an agent write, and name it in settings.extensions.claude.program"};
  };
  for (auto& directory : {places.dataDir, places.runtimeDir}) {
    if (liesIn(all, directory)) return denied(directory + " is Open Conduit's own, for its runs");
  }
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      auto write = binding.srt         ? binding.srt->write
                   : binding.container ? binding.container->write
                                       : std::vector<std::string>();
      for (auto& entry : write) {
        auto expanded = expandPath(entry, places.home, {});
        if (expanded && liesIn(all, *expanded)) return denied(fmt::format("{} is granted to {}", entry, binding.id()));
      }
    }
  }
  return true;
}

// In the strict mode. `program` is a real path, as it is run.
bool isListed(const config::SrtPolicy& policy, const Places& places, const std::string& program) {
  auto listed = sandbox::systemPaths();
  for (auto* list : {&*policy.readOnly, &policy.write}) {
    for (auto& entry : *list) {
      if (auto expanded = expandPath(entry, places.home, {}))
        listed.push_back(*expanded), listed.push_back(resolvedOr(*expanded));
    }
  }
  return std::any_of(listed.begin(), listed.end(), [&](auto& path) { return isAtOrUnder(program, path); });
}

OrRefusal<bool> checkReadable(const config::Binding& binding, const Places& places, const std::string& path) {
  if (!binding.srt) return true;
  auto all = stations(path);
  std::vector<std::string> closed = {places.home + "/.claude", places.configDir, places.stateDir};
  for (auto& entry : binding.srt->readDeny) {
    if (auto expanded = expandPath(entry, places.home, {})) closed.push_back(*expanded);
  }
  for (auto& directory : closed) {
    if (!liesIn(all, directory)) continue;
    return Refusal{"sandbox_denied", fmt::format("the sandbox cannot read {}, which is the program claude", path),
                   "install Claude Code elsewhere, and name it in settings.extensions.claude.program"};
  }
  if (binding.srt->readOnly && !isListed(*binding.srt, places, all.back())) {
    return Refusal{"sandbox_denied", fmt::format("read.only does not list {}, which is the program claude", path),
                   "add the folder that it is installed in to read.only"};
  }
  return true;
}

OrRefusal<std::string> locate(const config::Config& config, const Places& places, const Environment& own) {
  auto settings = config.settings.extensions.find("claude");
  if (settings != config.settings.extensions.end() && !settings->second.program.empty()) {
    auto& path = settings->second.program;
    if (isProgram(path)) return path;
    return Refusal{"executor_unavailable",
                   fmt::format("settings.extensions.claude.program: {} is no program that you can run", path),
                   "name the program claude"};
  }
  for (auto& path : candidates(places, own)) {
    if (isProgram(path)) return path;
  }
  return Refusal{"executor_unavailable",
                 "there is no program claude in the daemon's PATH, ~/.local/bin, /usr/local/bin or /usr/bin", howToGet};
}

}  // namespace

OrRefusal<std::string> findClaude(const config::Config& config, const config::Binding& binding, const Places& places,
                                  const Environment& own) {
  auto found = locate(config, places, own);
  if (!found.ok()) return found;
  auto unwritten = checkUnwritten(config, places, found.value());
  if (!unwritten.ok()) return unwritten.refusal();
  auto readable = checkReadable(binding, places, found.value());
  if (!readable.ok()) return readable.refusal();
  return resolvedOr(found.value());
}

}  // namespace oc::work
