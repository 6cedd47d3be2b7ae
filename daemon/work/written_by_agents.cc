#include "written_by_agents.h"

#include <fmt/format.h>
#include <kj/exception.h>

#include <functional>

#include "base/paths.h"
#include "daemon/sandbox/paths_on_disk.h"

namespace oc::work {

std::string resolvedOr(const std::string& path) {
  try {
    return resolvePath(path);
  } catch (const kj::Exception&) {
    return path;
  }
}

std::vector<std::string> stations(const std::string& path) {
  std::vector<std::string> all = {path};
  for (auto& link : sandbox::linksOnTheWayTo(path)) all.push_back(link);
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

namespace {

// The first grant of a binding's that has what is asked, for a sentence; empty: none has.
std::string firstGrant(const config::Config& config, const Places& places,
                       const std::function<bool(const std::string& folder)>& hasIt) {
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      auto write = binding.srt         ? binding.srt->write
                   : binding.container ? binding.container->write
                                       : std::vector<std::string>();
      for (auto& entry : write) {
        auto expanded = expandPath(entry, places.home, {});
        if (expanded && hasIt(*expanded)) return fmt::format("{} is granted to {}", entry, binding.id());
      }
    }
  }
  return "";
}

}  // namespace

std::string whoMayHaveWritten(const config::Config& config, const Places& places, const std::string& path) {
  auto all = stations(path);
  for (auto& directory : {places.dataDir, places.runtimeDir}) {
    if (liesIn(all, directory)) return directory + " is Open Conduit's own, for its runs";
  }
  return firstGrant(config, places, [&all](const std::string& folder) { return liesIn(all, folder); });
}

std::string whoMayTurn(const config::Config& config, const Places& places, const std::string& path) {
  auto links = sandbox::linksOnTheWayTo(path);
  auto end = resolvedOr(path);
  return firstGrant(config, places, [&](const std::string& folder) {
    return liesIn(links, folder) || isAtOrUnder(resolvedOr(folder), end);
  });
}

std::optional<Refusal> refuseTurnedPrograms(const config::Config& config, const Places& places,
                                            const std::vector<std::string>& programs) {
  for (auto& program : programs) {
    if (program.empty()) continue;
    auto who = whoMayTurn(config, places, program);
    if (who.empty()) continue;
    return Refusal{
        "sandbox_denied",
        fmt::format("{}, which runs outside of the sandbox, could have been exchanged by an agent: {}", program, who),
        "take it out of write, or keep it elsewhere: packaging/install-srt puts srt where no policy reaches"};
  }
  return std::nullopt;
}

}  // namespace oc::work
