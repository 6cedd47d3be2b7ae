#include "grants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "base/text.h"
#include "other_names.h"
#include "paths_on_disk.h"

namespace oc::sandbox {

namespace {

Refusal denied(const Grant& grant, const std::string& why, const std::string& fix) {
  return {"sandbox_denied", fmt::format("{}: \"{}\" {}", grant.field, printable(grant.text), why), fix};
}

bool isWithin(const Grant& grant, const std::string& directory) {
  if (directory.empty()) return false;
  return isAtOrUnder(grant.path, directory) || isAtOrUnder(grant.real, resolved(directory));
}

class Reader {
 public:
  Reader(const Places& places, const RunPlace& place, const std::vector<std::string>& operatorsClaude)
      : places(places), place(place), own(ownPaths(places, place)), operatorsClaude(operatorsClaude) {
    placeholders = {{"workspace", place.workspace}, {"run", place.runFiles}};
    if (!place.toolbeltSocket.empty()) placeholders["toolbelt"] = place.toolbeltSocket;
  }

  std::optional<Refusal> read(const std::vector<std::string>& entries, const std::string& list,
                              std::vector<Grant>& to) {
    for (size_t i = 0; i < entries.size(); ++i) {
      Grant grant{fmt::format("{}[{}]", list, i), entries[i], "", ""};
      auto path = expandPath(entries[i], places.home, placeholders);
      if (!path || hasControlCharacters(entries[i])) {
        return denied(grant, "is no path that this run has",
                      "write /…, ~/…, {workspace}…, {run}…, or in sockets {toolbelt}");
      }
      grant.path = *path;
      grant.real = resolved(*path);
      to.push_back(std::move(grant));
    }
    return std::nullopt;
  }

  std::optional<Refusal> refuseReachingIn(const std::vector<Grant>& grants) const {
    for (auto& grant : grants) {
      if (isOfThisRun(grant)) continue;
      for (auto& path : own) {
        if (isWithin(grant, path)) {
          return denied(grant, fmt::format("reaches into {}, which is Open Conduit's own", path),
                        "remove it: no policy can grant Open Conduit's state, config, secrets or another run's files");
        }
      }
      for (auto& path : operatorsClaude) {
        if (isWithin(grant, path)) {
          return denied(grant, fmt::format("reaches into {}, your own claude's, whose hooks would run as you", path),
                        "give the binding a CLAUDE_CONFIG_DIR of its own");
        }
      }
    }
    return std::nullopt;
  }

  // A link can be replaced by whoever may write where it lies: nothing can be mounted over it.
  std::optional<Refusal> refuseWritesBesideOwnLinks(const std::vector<Grant>& write) const {
    for (auto& file : own) {
      for (auto& link : linksOnTheWayTo(file)) {
        auto folder = resolved(parentOf(link));
        for (auto& grant : write) {
          if (!isAtOrUnder(folder, grant.real) || isOfThisRun(grant)) continue;
          return denied(grant, fmt::format("lets an agent replace {}, a link that leads to Open Conduit's own", link),
                        "put what it leads to in its place, or name a folder without it");
        }
      }
    }
    return std::nullopt;
  }

  std::vector<Grant> writableByAgents(const std::vector<Grant>& write) const {
    auto all = write;
    auto others = place.agentsWrite;
    others.insert(others.end(), {place.workspace, place.runFiles});
    for (auto& directory : others) all.push_back({"", "", directory, resolved(directory)});
    return all;
  }

  // A link that lies in a place that agents may write is theirs to make, and be it one of those that another link leads
  // through: what they may write may not lead out of itself.
  static std::optional<Refusal> refusePlantedLinks(const std::vector<Grant>& grants,
                                                   const std::vector<Grant>& writable) {
    for (auto& grant : grants) {
      for (auto& link : linksOnTheWayTo(grant.path)) {
        auto folder = resolved(parentOf(link));
        for (auto& root : writable) {
          if (isAtOrUnder(grant.real, root.real) || !isAtOrUnder(folder, root.real)) continue;
          return denied(grant,
                        fmt::format("leads to {} through a link in {}, which agents may write", grant.real, root.path),
                        "remove the link, or name the place that it leads to");
        }
      }
    }
    return std::nullopt;
  }

 private:
  // Both its name and where it leads.
  bool isOfThisRun(const Grant& grant) const {
    if (!place.toolbeltSocket.empty() && grant.path == place.toolbeltSocket) return true;
    for (auto& directory : {place.workspace, place.runFiles}) {
      if (isAtOrUnder(grant.path, directory) && isAtOrUnder(grant.real, resolved(directory))) return true;
    }
    return false;
  }

  const Places& places;
  const RunPlace& place;
  std::vector<std::string> own;
  std::vector<std::string> operatorsClaude;
  std::map<std::string, std::string> placeholders;
};

}  // namespace

std::vector<std::string> ownPaths(const Places& places, const RunPlace& place) {
  std::vector<std::string> own = {places.configDir, places.dataDir, places.runtimeDir, places.stateDir};
  for (auto& file : place.ownFiles) {
    bool inOne = std::any_of(own.begin(), own.end(), [&file](auto& path) { return isAtOrUnder(file, path); });
    if (!inOne) own.push_back(file);
  }
  return OtherNames().with(std::move(own));
}

OrRefusal<Grants> readContainerGrants(const config::ContainerPolicy& policy, const Places& places,
                                      const RunPlace& place) {
  Reader reader(places, place, {});
  Grants grants;
  if (auto refusal = reader.read(policy.write, "write", grants.write)) return *refusal;
  if (auto refusal = reader.read(policy.read, "read", grants.readAllow)) return *refusal;
  auto writable = reader.writableByAgents(grants.write);
  for (auto* list : {&grants.write, &grants.readAllow}) {
    if (auto refusal = Reader::refusePlantedLinks(*list, writable)) return *refusal;
    if (auto refusal = reader.refuseReachingIn(*list)) return *refusal;
  }
  if (auto refusal = reader.refuseWritesBesideOwnLinks(grants.write)) return *refusal;
  return grants;
}

OrRefusal<Grants> readGrants(const config::SrtPolicy& policy, const Places& places, const RunPlace& place,
                             const std::vector<std::string>& operatorsClaude) {
  Reader reader(places, place, operatorsClaude);
  Grants grants;
  for (auto [entries, list, to] :
       {std::tuple(&policy.write, "write", &grants.write), std::tuple(&policy.readDeny, "read.deny", &grants.readDeny),
        std::tuple(&policy.readAllow, "read.allow", &grants.readAllow),
        std::tuple(&policy.sockets, "sockets", &grants.sockets)}) {
    if (auto refusal = reader.read(*entries, list, *to)) return *refusal;
  }
  if (policy.readOnly) {
    if (auto refusal = reader.read(*policy.readOnly, "read.only", grants.readAllow)) return *refusal;
  }
  auto writable = reader.writableByAgents(grants.write);
  for (auto* list : {&grants.write, &grants.readAllow, &grants.sockets}) {
    if (auto refusal = Reader::refusePlantedLinks(*list, writable)) return *refusal;
    if (auto refusal = reader.refuseReachingIn(*list)) return *refusal;
  }
  if (auto refusal = reader.refuseWritesBesideOwnLinks(grants.write)) return *refusal;
  return grants;
}

}  // namespace oc::sandbox
