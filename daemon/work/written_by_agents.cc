#include "written_by_agents.h"

#include <fmt/format.h>
#include <kj/exception.h>
#include <unistd.h>

#include "base/paths.h"

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

std::string whoMayHaveWritten(const config::Config& config, const Places& places, const std::string& path) {
  auto all = stations(path);
  for (auto& directory : {places.dataDir, places.runtimeDir}) {
    if (liesIn(all, directory)) return directory + " is Open Conduit's own, for its runs";
  }
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      auto write = binding.srt         ? binding.srt->write
                   : binding.container ? binding.container->write
                                       : std::vector<std::string>();
      for (auto& entry : write) {
        auto expanded = expandPath(entry, places.home, {});
        if (expanded && liesIn(all, *expanded)) return fmt::format("{} is granted to {}", entry, binding.id());
      }
    }
  }
  return "";
}

}  // namespace oc::work
