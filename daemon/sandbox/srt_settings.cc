#include "srt_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/paths.h"
#include "base/text.h"
#include "credentials.h"
#include "grants.h"
#include "hidden_sockets.h"
#include "other_names.h"
#include "paths_on_disk.h"
#include "system_paths.h"

namespace oc::sandbox {

namespace {

// By path, the rule that put it there: the first one.
using Paths = std::map<std::string, std::string>;

// What git obeys in a repository beside the files of C7, and what lies beneath to make it a directory while it is
// absent.
struct GitPath {
  const char* name;
  const char* beneath;
};
constexpr GitPath gitProtected[] = {{"config", nullptr},          {"hooks", "x"},   {"info", "x"},
                                    {"config.worktree", nullptr}, {"modules", "x"}, {"worktrees", "x"}};

constexpr const char* credentialsRule = "common credentials; only their very path in read.allow lifts one";
constexpr const char* claudeRule = "your own claude's, whose hooks would run as you; nothing lifts it";
constexpr const char* socketRule = "leads out of the sandbox; only its very path in sockets lifts it";
constexpr const char* socketPlaceRule = "services make their sockets here anew";
constexpr const char* strictRule = "read.only lists all that is readable";
constexpr const char* systemRule = "the system's, which programs need to run";
constexpr const char* besideRule = "no socket that leads out of the sandbox";
constexpr const char* ownRule = "Open Conduit's own; nothing lifts it";
constexpr const char* partRule = "a part of the sandbox";
constexpr const char* outsideRule = "runs outside of the sandbox; nothing lifts it";
constexpr const char* workspaceRule = "the run's workspace";
constexpr const char* runRule = "the run's own directory, always";
constexpr const char* toolbeltRule = "the run's own toolbelt";
constexpr const char* gitRule = "git would obey what is written here";

bool covers(const Paths& directories, const std::string& path) {
  return std::any_of(directories.begin(), directories.end(),
                     [&](auto& entry) { return isAtOrUnder(path, entry.first); });
}

void add(Paths& paths, const std::string& path, const std::string& rule) { paths.emplace(path, rule); }

class SettingsMaker {
 public:
  SettingsMaker(const config::SrtPolicy& policy, const SrtParts& parts, const Places& places, const RunPlace& place,
                const std::map<std::string, std::string>& environ)
      : policy(policy), parts(parts), places(places), place(place), environ(environ) {}

  OrRefusal<SrtSettings> make() {
    auto claude = otherNames.with(operatorsClaude(places.home, environ));
    auto read = readGrants(policy, places, place, claude);
    if (!read) return read.refusal();
    grants = std::move(read).value();
    outside = otherNames.with(programsOutside());
    if (auto refusal = refuseWritesInPrograms()) return *refusal;
    if (auto refusal = checkSockets()) return *refusal;
    if (auto refusal = checkHosts()) return *refusal;
    if (auto refusal = checkStrict()) return *refusal;
    if (auto refusal = chooseScratch()) return *refusal;

    if (policy.readOnly) denyAll();
    denyCredentials();
    for (auto& path : claude) addWithTarget(denyRead, path, claudeRule);
    denySockets();
    denyOwn();
    keepReadable();
    exceptReadAllowed();
    allowWrites();
    protectGit();
    protectFromBroadWrites(claude);
    return assemble();
  }

 private:
  // And under each name that it has by another mount.
  void addWithTarget(Paths& paths, const std::string& path, const std::string& rule) const {
    add(paths, path, rule);
    auto real = resolved(path);
    add(paths, real, rule);
    for (auto& name : otherNames.of(real)) add(paths, name, rule);
  }

  bool isOfThisRun(const std::string& real) const {
    return isAtOrUnder(real, resolved(place.workspace)) || isAtOrUnder(real, resolved(place.runFiles));
  }

  // What we, or srt's parent, run as the operator. In a run's own places it is that run's, and nothing of ours.
  std::vector<std::string> programsOutside() const {
    auto candidates = parts.all();
    candidates.push_back("/usr/bin/git");
    if (!place.programs.empty()) {
      for (auto& path : childrenOf(place.programs)) {
        bool ours = path.substr(path.rfind('/') + 1).starts_with("open-conduit");
        if (ours && isProgram(path)) candidates.push_back(path);
      }
    }
    std::vector<std::string> programs;
    for (auto& path : candidates) {
      if (!path.empty() && !isOfThisRun(resolved(path))) programs.push_back(path);
    }
    return programs;
  }

  std::optional<Refusal> refuseWritesInPrograms() const {
    for (auto& grant : grants.write) {
      for (auto& path : outside) {
        if (isOfThisRun(grant.real) || !isAtOrUnder(grant.real, resolved(path))) continue;
        return Refusal{"sandbox_denied",
                       fmt::format("{}: \"{}\" lies in {}, which runs outside of the sandbox", grant.field,
                                   printable(grant.text), path),
                       "name a folder without it"};
      }
    }
    return std::nullopt;
  }

  std::optional<Refusal> checkSockets() const {
    if (!policy.sockets.empty() && !policy.allUnixSockets) {
      return Refusal{"sandbox_denied", "sockets: srt on Linux cannot allow a socket by its path",
                     "set unix_sockets to \"all\", or remove sockets"};
    }
    if (!policy.allUnixSockets && parts.seccompHelper.empty()) {
      // srt itself would only warn, and leave the sockets open.
      return Refusal{"sandbox_unavailable", "srt has no apply-seccomp for this machine, so it cannot deny Unix sockets",
                     "reinstall srt, or set unix_sockets to \"all\""};
    }
    return std::nullopt;
  }

  // What srt itself would refuse, after the run has begun.
  std::optional<Refusal> checkHosts() const {
    for (size_t i = 0; i < policy.networkAllow.size(); ++i) {
      auto& host = policy.networkAllow[i];
      bool address = host.host.find(':') != std::string::npos;
      bool dotted = host.host.find('.') != std::string::npos;
      if (address || dotted || (host.host == "localhost" && !host.subdomains)) continue;
      return Refusal{"sandbox_unavailable",
                     fmt::format("network.allow[{}]: srt cannot enforce \"{}\", a name without a dot", i,
                                 printable(host.toString())),
                     "name the host in full, or use a container"};
    }
    return std::nullopt;
  }

  std::optional<Refusal> checkStrict() const {
    if (!policy.readOnly) return std::nullopt;
    if (!policy.readDeny.empty() || !policy.readAllow.empty()) {
      return Refusal{"sandbox_denied", "read.only cannot be together with read.deny or read.allow",
                     "delete one of them"};
    }
    for (auto& grant : grants.readAllow) {
      if (grant.real != "/") continue;
      return Refusal{"sandbox_denied", fmt::format("{}: \"{}\" is everything", grant.field, printable(grant.text)),
                     "list what is needed"};
    }
    return std::nullopt;
  }

  // A directory of our own that no run needs: the instance's empty file system lies over it, which hides it, too.
  std::optional<Refusal> chooseScratch() {
    for (auto& path : {places.stateDir, places.configDir}) {
      bool apart = !isAtOrUnder(places.dataDir, path) && !isAtOrUnder(path, places.dataDir);
      if (apart && isDirectory(path)) {
        scratch = path;
        return std::nullopt;
      }
    }
    return Refusal{"sandbox_unavailable",
                   fmt::format("neither {} nor {} is a directory apart from {}", places.stateDir, places.configDir,
                               places.dataDir),
                   "give XDG_STATE_HOME and XDG_DATA_HOME different directories"};
  }

  // Only the very path lifts: as it is written, or where the denied one leads. Where the *allowed* one leads does not
  // count, since a link can be planted.
  bool isLifted(const std::string& path) const {
    auto real = resolved(path);
    return std::any_of(grants.readAllow.begin(), grants.readAllow.end(),
                       [&](auto& grant) { return grant.path == path || grant.path == real; });
  }

  void denyAll() {
    add(denyRead, "/", strictRule);
    add(denyRead, "/sys", strictRule);  // srt denies the root by what is in it, and leaves this one out
    for (auto& path : systemPaths()) add(allowRead, path, systemRule);
  }

  // Denied by nothing but the strict mode itself.
  bool isMerelyUnlisted(const std::string& path) const { return policy.readOnly && deepestRule(path, denyRead) == "/"; }

  void denyCredentials() {
    for (auto& path : commonCredentials(places.home)) {
      if (!isLifted(path)) addWithTarget(denyRead, path, credentialsRule);
    }
    for (auto& grant : grants.readDeny) {
      if (!isLifted(grant.path)) addWithTarget(denyRead, grant.path, grant.field);
    }
  }

  void denySockets() {
    std::vector<std::string> lifted;
    for (auto& grant : grants.sockets) lifted.push_back(grant.path);
    auto sockets = hiddenSockets(environ, places.home, lifted);
    for (auto& path : sockets.paths) {
      addWithTarget(denyRead, path, socketRule);
      addWithTarget(socketPaths, path, socketRule);
    }
    for (auto& path : sockets.directories) add(denyRead, path, socketPlaceRule);
    if (!policy.readOnly) {
      for (auto& path : sockets.shown) add(allowRead, path, besideRule);
    }
    for (auto& grant : grants.sockets) {
      if (covers(denyRead, grant.path)) add(allowRead, grant.path, grant.field);
      if (covers(denyRead, grant.real)) add(allowRead, grant.real, grant.field);
    }
  }

  // The scratch is not here: srt needs what the instance puts there, and there is nothing else in it.
  void denyOwn() {
    for (auto& path : ownPaths(places, place)) {
      if (path != scratch) addWithTarget(denyRead, path, ownRule);
    }
  }

  // What a run needs whatever directory above it is denied.
  void keepReadable() {
    add(allowRead, resolved(place.workspace), workspaceRule);
    add(allowRead, resolved(place.runFiles), runRule);
    for (auto& path : {parts.package(), parts.socat, scratch}) {
      if (!path.empty()) add(allowRead, resolved(path), partRule);
    }
    if (!place.toolbeltSocket.empty()) add(allowRead, resolved(place.toolbeltSocket), toolbeltRule);
  }

  void exceptReadAllowed() {
    for (auto& grant : grants.readAllow) {
      // A hidden socket is lifted by `sockets` alone; files beside it are files.
      if (covers(socketPaths, grant.path) && (isDirectory(grant.path) || isSocket(grant.path))) {
        note(grant, "holds sockets that lead out of the sandbox; name them in sockets");
        continue;
      }
      if (policy.readOnly && !exists(grant.real) && !isToCome(grant.real)) {
        note(grant, "does not exist, so there is nothing to read; make it before the run");
        continue;
      }
      if (covers(denyRead, grant.path)) add(allowRead, grant.path, grant.field);
      if (isMerelyUnlisted(grant.real)) add(allowRead, grant.real, grant.field);
    }
    // In the plain mode, too, what can be written can be read where nothing denies it by name.
    for (auto& grant : grants.write) {
      if (!isMerelyUnlisted(grant.real) || (!exists(grant.real) && !isToCome(grant.real))) continue;
      add(allowRead, grant.real, grant.field);
      if (isMerelyUnlisted(grant.path)) add(allowRead, grant.path, grant.field);
    }
  }

  void allowWrites() {
    add(allowWrite, resolved(place.runFiles), runRule);
    for (auto& grant : grants.write) {
      if (!exists(grant.real) && !isToCome(grant.real)) {
        note(grant, "does not exist, so it is not writable; make it before the run");
      } else if (!isReadable(grant.real)) {
        note(grant, "may not be read, and write lifts no read deny; name the very path in read.allow too");
      } else {
        add(allowWrite, grant.real, grant.field);
      }
    }
    reopenBuried();
    // Under a directory that is granted whole, too: it is named to be readable in what is hidden, and that alone would
    // make it read-only.
    if (covers(allowWrite, resolved(place.workspace))) add(allowWrite, resolved(place.workspace), workspaceRule);
  }

  // Of what lies in a hidden directory srt gives back what can be written first, and then what can be read: a readable
  // folder buries what is writable within. What is hidden itself is given back after both.
  void reopenBuried() {
    for (auto& grant : grants.write) {
      if (allowWrite.count(grant.real) == 0) continue;
      auto above = grant.real.substr(0, std::max<size_t>(grant.real.rfind('/'), 1));
      auto readable = deepestRule(above, allowRead), hidden = deepestRule(grant.real, denyRead);
      if (hidden.empty() || readable.size() < hidden.size() || covers(allowWrite, readable)) continue;
      if (isDirectory(grant.real)) {
        add(reopened, grant.real, grant.field);
      } else {
        note(grant,
             "is no directory, and lies in one that is readable as an exception: it is read-only; name its folder");
      }
    }
  }

  void protectGit() {
    auto git = resolved(place.workspace) + "/.git";
    if (!covers(allowWrite, git) || (!isDirectory(git) && !place.toCome)) return;
    // A mount of its own cannot be renamed, so nothing can be put in the place of the protected files' parent.
    add(allowWrite, git, workspaceRule);
    for (auto& path : gitProtected) denyEvenAbsent(git + "/" + path.name, path.beneath, gitRule);
  }

  bool isReadable(const std::string& path) const {
    return deepestRule(path, denyRead).size() <= deepestRule(path, allowRead).size();
  }

  // The path of the rule that decides: the deepest one over it; empty: none is.
  static std::string deepestRule(const std::string& path, const Paths& directories) {
    std::string deepest;
    for (auto& [directory, rule] : directories) {
      if (isAtOrUnder(path, directory) && directory.size() > deepest.size()) deepest = directory;
    }
    return deepest;
  }

  // The run's own places, of a run that there is not yet.
  bool isToCome(const std::string& path) const {
    return place.toCome &&
           (isAtOrUnder(path, resolved(place.workspace)) || isAtOrUnder(path, resolved(place.runFiles)));
  }

  // srt puts a placeholder where a path is absent: an empty file, or with a path beneath an empty directory.
  void denyEvenAbsent(const std::string& path, const char* beneath, const std::string& rule) {
    add(denyWrite, path, rule);
    if (beneath != nullptr && !exists(path) && !place.toCome) add(denyWrite, path + "/" + beneath, rule);
  }

  void protectFromBroadWrites(const std::vector<std::string>& claude) {
    auto deny = [this](const std::string& path, const char* beneath, const char* rule) {
      auto real = resolved(path);
      if (covers(allowWrite, real) && !isOfThisRun(real)) denyEvenAbsent(real, beneath, rule);
    };
    for (auto& path : claude) deny(path, path.ends_with(".json") ? nullptr : "x", claudeRule);
    for (auto& path : ownPaths(places, place)) {
      // A directory that is there is hidden, and may hold the workspace, which a write deny would make read-only.
      bool hidden = isDirectory(path) && path != scratch;
      auto& files = place.ownFiles;
      bool file = std::find(files.begin(), files.end(), path) != files.end();
      if (!hidden) deny(path, file ? nullptr : "x", ownRule);
    }
    for (auto& path : outside) {
      deny(path, nullptr, outsideRule);
      for (auto& grant : grants.write) {
        if (isOfThisRun(grant.real) || !isAtOrUnder(resolved(path), grant.real)) continue;
        note(grant, fmt::format("holds {}, which runs outside of the sandbox: that stays read-only", path));
      }
    }
    // srt's own grant, shared by every run on the machine.
    if (!covers(allowWrite, "/tmp/claude"))
      add(denyWrite, "/tmp/claude", "srt shares it among all runs of the machine");
  }

  void note(const Grant& grant, const std::string& text) {
    notes.push_back(fmt::format("{}: \"{}\" {}", grant.field, printable(grant.text), text));
  }

  SrtSettings assemble() {
    SrtSettings result;
    result.settings = settings();
    result.settingsFile = places.runSettings(place.run);
    result.scratch = scratch;
    result.notes = std::move(notes);
    result.rules = rules();
    for (auto& grant : grants.sockets) {
      result.sockets.push_back(grant.path);
      if (grant.real != grant.path) result.sockets.push_back(grant.real);
    }
    arrangeMounts(result);
    result.environment = environment();
    return result;
  }

  // Of the scratch, what is there for the operator is not what is there for a run.
  SrtRules rules() const {
    SrtRules rules = {denyRead, allowRead, allowWrite, denyWrite};
    rules.allowRead.erase(resolved(scratch));
    addWithTarget(rules.denyRead, scratch, ownRule);
    return rules;
  }

  Json settings() const {
    std::set<std::string> domains;
    for (auto& host : policy.networkAllow) domains.insert(host.toString());
    auto allHidden = denyRead;
    allHidden.insert(reopened.begin(), reopened.end());
    Json json = {{"network",
                  {{"allowedDomains", domains},
                   {"deniedDomains", Json::array()},
                   {"strictAllowlist", true},
                   {"allowAllUnixSockets", policy.allUnixSockets}}},
                 {"filesystem",
                  {{"denyRead", entries(allHidden)},
                   {"allowRead", entries(allowRead)},
                   {"allowWrite", entries(allowWrite)},
                   {"denyWrite", entries(denyWrite)},
                   {"allowGitConfig", false}}},
                 {"bwrapPath", parts.bwrap},
                 {"socatPath", parts.socat},
                 {"ripgrep", {{"command", parts.ripgrep}}}};
    if (!policy.allUnixSockets) json["seccomp"] = {{"applyPath", parts.seccompHelper}};
    return json;
  }

  // A name that srt would read as a pattern is marked as the name that it is.
  static Json entries(const Paths& paths) {
    Json list = Json::array();
    for (auto& [path, rule] : paths) {
      if (path.find_first_of("*?[]{}!\\") == std::string::npos) {
        list.push_back(path);
      } else {
        list.push_back({{"path", path}, {"literal", true}});
      }
    }
    return list;
  }

  void arrangeMounts(SrtSettings& result) const {
    for (auto& path : otherNames.with({places.configDir, places.dataDir, places.runtimeDir, places.stateDir})) {
      if (isDirectory(path) && path != scratch) result.hidden.push_back(path);
    }
    std::vector<std::string> needed = {place.workspace, place.runFiles, parts.package(), parts.node,
                                       result.settingsFile};
    // Node's modules and the packages that srt needs lie beside it.
    auto folder = places.dataDir + "/srt";
    if (isDirectory(folder)) needed.push_back(folder);
    if (resolved(folder) != folder) needed.push_back(resolved(folder));  // a link is kept as one
    if (!place.toolbeltSocket.empty()) needed.push_back(place.toolbeltSocket);
    for (auto& path : needed) {
      bool hidden = std::any_of(result.hidden.begin(), result.hidden.end(),
                                [&path](auto& directory) { return isAtOrUnder(path, directory); });
      bool inFolder = path != folder && isAtOrUnder(path, folder);
      if (hidden && !inFolder) result.kept.push_back(path);
    }
  }

  std::map<std::string, std::string> environment() const {
    // srt's own NO_PROXY has all private ranges, which would keep an allowed private address from its proxy. A loopback
    // name that is allowed means the host's loopback, so it goes through the proxy as well.
    std::string noProxy;
    for (std::string name : {"localhost", "127.0.0.1", "::1"}) {
      bool allowed = std::any_of(policy.networkAllow.begin(), policy.networkAllow.end(),
                                 [&name](auto& host) { return host.host == name; });
      if (!allowed) noProxy += (noProxy.empty() ? "" : ",") + name;
    }
    return {{"TMPDIR", place.tmp}, {"NODE_USE_ENV_PROXY", "1"}, {"NO_PROXY", noProxy}, {"no_proxy", noProxy}};
  }

  const config::SrtPolicy& policy;
  const SrtParts& parts;
  const Places& places;
  const RunPlace& place;
  const std::map<std::string, std::string>& environ;
  OtherNames otherNames;
  std::vector<std::string> outside;  // programs that run as the operator
  Grants grants;
  std::string scratch;
  Paths denyRead, allowRead, allowWrite, denyWrite, socketPaths;
  Paths reopened;  // see reopenBuried
  std::vector<std::string> notes;
};

std::vector<std::string> partsJob(const SrtParts& parts) {
  return {"--node",  parts.node,  "--cli",     parts.cli,     "--bwrap",   parts.bwrap,
          "--socat", parts.socat, "--ripgrep", parts.ripgrep, "--seccomp", parts.seccompHelper};
}

}  // namespace

OrRefusal<SrtSettings> makeSrtSettings(const config::SrtPolicy& policy, const SrtParts& parts, const Places& places,
                                       const RunPlace& place, const std::map<std::string, std::string>& environ) {
  return SettingsMaker(policy, parts, places, place, environ).make();
}

std::vector<std::string> srtJob(const SrtParts& parts, const SrtSettings& settings) {
  auto job = partsJob(parts);
  job.insert(job.end(), {"--scratch", settings.scratch, "--settings", settings.settingsFile});
  for (auto& path : settings.sockets) job.insert(job.end(), {"--socket", path});
  return job;
}

std::vector<std::string> srtCheckJob(const SrtParts& parts, const Places& places) {
  auto job = partsJob(parts);
  job.insert(job.end(), {"--scratch", places.stateDir});
  return job;
}

}  // namespace oc::sandbox
