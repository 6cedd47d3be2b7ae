#include "container.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "base/paths.h"
#include "base/text.h"
#include "daemon/config/formats.h"
#include "credentials.h"
#include "grants.h"
#include "hidden_sockets.h"
#include "other_names.h"
#include "paths_on_disk.h"

namespace oc::sandbox {

namespace {

// What no container of ours gets, however it is written.
constexpr const char* systemPlaces[] = {"/proc", "/sys", "/dev"};

Refusal denied(const Grant& grant, const std::string& why, const std::string& fix) {
  return {"sandbox_denied", fmt::format("{}: \"{}\" {}", grant.field, printable(grant.text), why), fix};
}

class SettingsMaker {
 public:
  SettingsMaker(const config::ContainerPolicy& policy, const Places& places, const ContainerPlace& place,
                const std::map<std::string, std::string>& environ)
      : policy(policy), places(places), place(place), environ(environ) {}

  OrRefusal<ContainerSettings> make() {
    auto read = readContainerGrants(policy, places, place.run);
    if (!read.ok()) return read.refusal();
    grants = std::move(read.value());
    for (auto* list : {&grants.write, &grants.readAllow}) {
      for (auto& grant : *list) {
        if (auto refusal = refuseUnfit(grant)) return *refusal;
      }
    }
    for (auto& grant : grants.write) {
      if (auto refusal = refuseUnfitToWrite(grant)) return *refusal;
    }
    mountGranted();
    mountOurs();
    protectGit();
    if (auto refusal = identifyMounts()) return *refusal;
    return assemble();
  }

 private:
  std::optional<Refusal> refuseUnfit(const Grant& grant) const {
    struct stat stats;
    bool toCome = place.run.toCome && isOfThisRun(grant);
    if (!exists(grant.real) && !toCome) {
      auto error = errno;
      if (error != ENOENT && error != ENOTDIR && error != ELOOP) {
        return denied(grant, fmt::format("cannot be looked at: {}", strerror(error)),
                      "name what you can read yourself, or remove it from the policy");
      }
      bool link = lstat(grant.path.c_str(), &stats) == 0 && S_ISLNK(stats.st_mode);
      return denied(grant, link ? "is a link that leads nowhere" : "does not exist",
                    "make it before the run, or remove it from the policy");
    }
    if (grant.real == "/") return denied(grant, "is the whole file system", "name the folders that the agent needs");
    for (auto name : systemPlaces) {
      if (isAtOrUnder(grant.real, name)) {
        return denied(grant, fmt::format("lies in {}, which is the machine's own", name), "remove it from the policy");
      }
    }
    if (isKernelsOwn(grant.real)) {
      return denied(grant, "is the kernel's own (proc, sys or the like), which is the machine's",
                    "remove it from the policy");
    }
    for (auto& own : ownPaths(places, place.run)) {
      if (isOfThisRun(grant)) break;
      if (isAtOrUnder(resolved(own), grant.real)) {
        return denied(
            grant, fmt::format("lies above {}, which is Open Conduit's own", own),
            "name the folders beneath it that the agent needs: a container sees all that is in a granted one");
      }
    }
    return refuseSockets(grant);
  }

  // A socket that is mounted read-only can be connected to all the same.
  std::optional<Refusal> refuseSockets(const Grant& grant) const {
    if (isOfThisRun(grant)) return std::nullopt;
    constexpr const char* fix = "name a folder without it";
    auto engines = OtherNames().with({resolved(place.engineSocket)});
    if (std::any_of(engines.begin(), engines.end(), [&grant](auto& name) { return isAtOrUnder(name, grant.real); })) {
      return denied(grant, "holds the Docker socket, which is as good as root", fix);
    }
    for (auto name : {"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"}) {
      if (exists(name) && isAtOrUnder(resolved(name), grant.real)) {
        return denied(grant, fmt::format("holds {}, which is as good as root", name), fix);
      }
    }
    if (grant.real == "/run" || grant.real == "/var/run") {
      return denied(grant, "holds the sockets of the machine's services", "name what the agent needs in it");
    }
    // One that is named itself is meant.
    if (isSocket(grant.real)) return std::nullopt;
    for (auto& socket : hiddenSockets(environ, places.home, {}).paths) {
      if (!exists(socket) || !isAtOrUnder(resolved(socket), grant.real)) continue;
      return denied(grant,
                    fmt::format("holds {}, by which an agent could have things run outside of its container", socket),
                    fix);
    }
    return std::nullopt;
  }

  bool isOfThisRun(const Grant& grant) const {
    return isAtOrUnder(grant.real, resolved(place.run.workspace)) ||
           isAtOrUnder(grant.real, resolved(place.run.runFiles));
  }

  std::optional<Refusal> refuseUnfitToWrite(const Grant& grant) const {
    if (isOfThisRun(grant)) return std::nullopt;
    auto programs = place.outside;
    programs.push_back(place.programs);
    for (auto& program : OtherNames().with(programs)) {
      if (program.empty()) continue;
      bool within = isAtOrUnder(grant.real, resolved(program));
      if (within || isAtOrUnder(resolved(program), grant.real)) {
        return denied(grant,
                      fmt::format("{} {}, which runs outside of the container", within ? "lies in" : "holds", program),
                      "grant it in read, or name a folder without it");
      }
    }
    for (auto& path : OtherNames().with(operatorsClaude(places.home, environ))) {
      if (isAtOrUnder(resolved(path), grant.real) || isAtOrUnder(grant.real, resolved(path))) {
        return denied(grant, fmt::format("holds {}, your own claude's, whose hooks would run as you", path),
                      "name a folder without it; a container's claude has a home of its own");
      }
    }
    return std::nullopt;
  }

  void mount(const std::string& source, const std::string& target, bool writable, const std::string& rule) {
    auto& entry = mounts[target];
    entry = {resolved(source), target, writable || entry.writable, 0, 0, rule};
  }

  void mountGranted() {
    for (auto& grant : grants.readAllow) mount(grant.real, grant.path, false, grant.field);
    for (auto& grant : grants.write) mount(grant.real, grant.path, true, grant.field);
  }

  void mountOurs() {
    if (mounts.count(place.run.workspace) == 0) {
      // An agent without its folder could not even start there.
      mount(place.run.workspace, place.run.workspace, false, "the run's workspace; neither read nor write lists it");
      notes.push_back("the policy grants the workspace neither in read nor in write: it is read-only");
    }
    mount(place.run.runFiles, place.run.runFiles, true, "the run's own directory, always");
    mount(place.home, place.home, true, "the Work's own home, always");
    mount(place.programs + "/open-conduit-toolbelt", containerProgram, false, "the toolbelt's client, always");
    if (!place.secrets.empty())
      mount(place.secrets, containerSecrets, true, "the secrets' file, until the entry point has read it");
  }

  // Of a repository of which anything is writable, by whatever name.
  void protectGit() {
    auto git = place.run.workspace + "/.git";
    if (!isDirectory(git) && !place.run.toCome) return;
    bool writable = std::any_of(mounts.begin(), mounts.end(), [&git](auto& mount) {
      return mount.second.writable && (isAtOrUnder(git, mount.first) || isAtOrUnder(mount.first, git));
    });
    // A mount of its own, so that nothing can be put in its place.
    if (mounts.at(place.run.workspace).writable) mount(git, git, true, "the run's workspace");
    for (auto& part : gitProtected) {
      auto path = git + "/" + part.name;
      for (auto& [target, entry] : mounts) {
        if (isAtOrUnder(target, path) || isAtOrUnder(entry.source, resolved(path))) entry.writable = false;
      }
      if (writable && (exists(path) || place.run.toCome))
        mounts[path] = {resolved(path), path, false, 0, 0, "git would obey what is written here"};
    }
  }

  std::optional<Refusal> identifyMounts() {
    for (auto& [target, entry] : mounts) {
      if (place.run.toCome) continue;
      struct stat stats;
      if (stat(entry.source.c_str(), &stats) < 0) {
        return Refusal{"sandbox_denied",
                       fmt::format("{} cannot be looked at: {}", printable(entry.source), strerror(errno)),
                       "see to it that it exists and is yours"};
      }
      entry.device = stats.st_dev;
      entry.inode = stats.st_ino;
    }
    return std::nullopt;
  }

  ContainerSettings assemble() {
    ContainerSettings result;
    for (auto& [target, entry] : mounts) result.mounts.push_back(entry);
    result.allow = policy.networkAllow;
    result.allowedPrivate = policy.networkPrivate;
    result.refusedAddresses = ownAddresses();
    if (!policy.memory.empty()) result.memoryBytes = config::memoryBytes(policy.memory);
    if (policy.cpus) result.nanoCpus = static_cast<uint64_t>(std::llround(*policy.cpus * 1e9));
    result.pids = policy.pids;
    result.directory = place.run.workspace;
    result.environment = containerEnvironment(place.home, places.home, result.mounts);
    result.notes = std::move(notes);
    return result;
  }

  const config::ContainerPolicy& policy;
  const Places& places;
  const ContainerPlace& place;
  const std::map<std::string, std::string>& environ;
  Grants grants;
  std::map<std::string, ContainerMount> mounts;
  std::vector<std::string> notes;
};

}  // namespace

std::map<std::string, std::string> containerEnvironment(const std::string& workHome, const std::string& operatorsHome,
                                                        const std::vector<ContainerMount>& mounts) {
  auto proxy = fmt::format("http://127.0.0.1:{}", containerProxyPort);
  std::map<std::string, std::string> result = {
      {"HOME", workHome}, {"CLAUDE_CONFIG_DIR", workHome}, {"NODE_USE_ENV_PROXY", "1"}};
  for (auto name : {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}) result[name] = proxy;
  // Servers that the agent starts for its tests are on the container's own loopback.
  for (auto name : {"NO_PROXY", "no_proxy"}) result[name] = "localhost,127.0.0.1,::1";
  for (auto& path : {operatorsHome + "/.gitconfig", operatorsHome + "/.config/git/config"}) {
    auto isThere = [&path](const ContainerMount& mount) { return mount.target == path; };
    if (std::any_of(mounts.begin(), mounts.end(), isThere)) result["GIT_CONFIG_GLOBAL"] = path;
  }
  return result;
}

std::vector<std::string> ownAddresses() {
  std::set<std::string> addresses;
  struct ifaddrs* list = nullptr;
  if (getifaddrs(&list) < 0) return {};
  for (auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (entry->ifa_addr->sa_family == AF_INET) {
      inet_ntop(AF_INET, &reinterpret_cast<struct sockaddr_in*>(entry->ifa_addr)->sin_addr, text, sizeof(text));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      inet_ntop(AF_INET6, &reinterpret_cast<struct sockaddr_in6*>(entry->ifa_addr)->sin6_addr, text, sizeof(text));
    }
    if (text[0] != 0) addresses.insert(text);
  }
  freeifaddrs(list);
  return {addresses.begin(), addresses.end()};
}

OrRefusal<ContainerSettings> makeContainerSettings(const config::ContainerPolicy& policy, const Places& places,
                                                   const ContainerPlace& place,
                                                   const std::map<std::string, std::string>& environ) {
  return SettingsMaker(policy, places, place, environ).make();
}

std::map<std::string, std::string> writableOf(const ContainerSettings& settings) {
  std::map<std::string, std::string> writable;
  for (auto& mount : settings.mounts) {
    if (mount.writable) writable.emplace(mount.source, mount.rule);
  }
  return writable;
}

}  // namespace oc::sandbox
