#include "find_claude.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/paths.h"
#include "base/text.h"
#include "daemon/sandbox/system_paths.h"
#include "daemon/work/written_by_agents.h"

namespace oc::work {

namespace {

constexpr const char* howToGet =
    "install Claude Code and name its program in settings.extensions.claude.program, or put it in the daemon's PATH";

bool isProgram(const std::string& path) {
  struct stat stats;
  return stat(path.c_str(), &stats) == 0 && S_ISREG(stats.st_mode) && access(path.c_str(), X_OK) == 0;
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

OrRefusal<bool> checkUnwritten(const config::Config& config, const Places& places, const std::string& path) {
  auto who = whoMayHaveWritten(config, places, path);
  if (who.empty()) return true;
  return Refusal{"sandbox_denied", fmt::format("{} could have been written by an agent: {}", path, who),
                 "keep claude where no policy lets an agent write, and name it in settings.extensions.claude.program"};
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
