#include "startup_writes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "base/home_files.h"
#include "base/text.h"
#include "other_names.h"
#include "paths_on_disk.h"

namespace oc::sandbox {

std::optional<Refusal> refuseStartupWrites(const std::map<std::string, std::string>& writable, const Places& places) {
  auto home = resolved(places.home);
  OtherNames others;
  for (auto& [path, rule] : writable) {
    if (!rule.starts_with("write[")) continue;
    // The workspace and the run's own folder, under whatever name they are granted.
    if (isAtOrUnder(path, resolved(places.worksDir())) || isAtOrUnder(path, resolved(places.runsDir()))) continue;
    auto names = others.mountsBeneath(path);
    names.insert(names.begin(), path);
    names = others.with(std::move(names));
    auto name = std::find_if(names.begin(), names.end(),
                             [&home](auto& name) { return !startupFileTouched(home, name).empty(); });
    if (name == names.end()) continue;
    auto touched = startupFileTouched(home, *name);
    return Refusal{"sandbox_denied",
                   fmt::format("{}: {} {} {}, which your shell, session or tools obey outside of the sandbox", rule,
                               printable(path), isAtOrUnder(*name, touched) ? "lies in" : "holds", touched),
                   "grant the folders that runs need to write, and none of these"};
  }
  return std::nullopt;
}

}  // namespace oc::sandbox
