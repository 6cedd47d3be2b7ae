#include "own_files.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include <set>

#include "base/paths.h"
#include "paths_on_disk.h"

namespace oc::sandbox {

namespace {

constexpr std::string_view filePrefix = "file:";

void addSecrets(const std::map<std::string, std::string>& references, std::set<std::string>& to) {
  for (auto& [name, reference] : references) {
    if (reference.starts_with(filePrefix)) to.insert(normalizePath(reference.substr(filePrefix.size())));
  }
}

// Places has these by their real paths. Whoever could put another folder in a link's place would give us its config.
void addNamesOfLinks(const std::map<std::string, std::string>& environ, std::set<std::string>& to) {
  auto valueOf = [&environ](const char* name) {
    auto found = environ.find(name);
    return found == environ.end() || !found->second.starts_with('/') ? std::string() : found->second;
  };
  auto home = valueOf("HOME");
  for (auto [variable, otherwise] : {std::pair("XDG_CONFIG_HOME", "/.config"),
                                     {"XDG_STATE_HOME", "/.local/state"},
                                     {"XDG_DATA_HOME", "/.local/share"},
                                     {"XDG_RUNTIME_DIR", ""}}) {
    auto base = valueOf(variable);
    if (base.empty() && *otherwise != 0 && !home.empty()) base = home + otherwise;
    if (base.empty()) continue;
    auto name = normalizePath(base + "/open-conduit");
    if (!linksOnTheWayTo(name).empty()) to.insert(name);
  }
}

// The command line may have been given a relative one.
std::string absolutePath(const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  char* directory = get_current_dir_name();
  KJ_REQUIRE(directory != nullptr, "the working directory is not known");
  KJ_DEFER(free(directory));
  return normalizePath(fmt::format("{}/{}", directory, path));
}

}  // namespace

std::vector<std::string> ownFiles(const config::Config& config, const std::map<std::string, std::string>& environ) {
  std::set<std::string> files;
  if (!config.path.empty()) files.insert({absolutePath(config.path), resolved(absolutePath(config.path))});
  for (auto& connection : config.connections) addSecrets(connection.secretRefs, files);
  for (auto& scope : config.scopes) addSecrets(scope.secretRefs, files);
  addNamesOfLinks(environ, files);
  return {files.begin(), files.end()};
}

std::vector<std::string> writtenByAgents(const config::Config& config, const std::string& home) {
  std::set<std::string> folders;
  auto add = [&](const std::vector<std::string>& entries) {
    for (auto& entry : entries) {
      if (auto path = expandPath(entry, home, {})) folders.insert(*path);
    }
  };
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      if (binding.srt) add(binding.srt->write);
      if (binding.container) add(binding.container->write);
    }
  }
  return {folders.begin(), folders.end()};
}

}  // namespace oc::sandbox
