// From a binding's container policy to what its run's container gets, or the refusal that comes instead. Looks at the
// operator's files; starts nothing, makes nothing and talks to no engine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"
#include "srt_settings.h"

namespace oc::sandbox {

// Where things lie inside of every container of ours.
constexpr auto containerProgram = "/open-conduit/bin/open-conduit-toolbelt";
constexpr auto containerGateway = "/open-conduit/gateway";  // the gateway's sockets
constexpr auto containerSecrets =
    "/open-conduit/secrets";                   // a folder with the file `secrets`, which the entry point deletes
constexpr uint16_t containerProxyPort = 3128;  // on the container's own loopback
constexpr uint16_t containerToolbeltPort = 3129;

// What git obeys in a repository (C7), which a container may not write.
struct GitPart {
  const char* name;
  bool folder;
};
constexpr GitPart gitProtected[] = {{"config", false},          {"hooks", true},   {"info", true},
                                    {"config.worktree", false}, {"modules", true}, {"worktrees", true}};

struct ContainerMount {
  std::string source;  // resolved
  std::string target;
  bool writable = false;
  uint64_t device = 0, inode = 0;  // of the source when it was planned; the entry point compares them
  std::string rule = {};           // what put it there: "write[0]", or a sentence
};

struct ContainerSettings;
// What the container may write outside of itself: each source, with its mount's rule.
std::map<std::string, std::string> writableOf(const ContainerSettings& settings);

struct ContainerSettings {
  std::vector<ContainerMount> mounts;  // by target
  std::vector<HostPattern> allow;
  std::vector<std::string> allowedPrivate;           // CIDR
  std::vector<std::string> refusedAddresses;         // this machine's own
  uint64_t memoryBytes = 0, nanoCpus = 0, pids = 0;  // 0: no limit
  std::string directory;                             // where the agent starts
  std::map<std::string, std::string> environment;    // what the container adds: HOME, the proxy, …
  std::vector<std::string> notes;                    // what the operator should know of it
};

struct ContainerPlace {
  RunPlace run;
  std::string home;                  // the Work's own
  std::string secrets;               // the folder that holds the secret file; empty: no secrets
  std::string programs;              // where Open Conduit's programs are
  std::string engineSocket;          // never granted
  std::vector<std::string> outside;  // programs that run outside of sandboxes (srt, node, bwrap, git): never writable
};

// Refuses (`sandbox_denied`), naming the entry: a path that does not exist, or is a link that leads nowhere; one that
// lies in or above Open Conduit's own directories or config; /, /run, /proc, /sys, /dev, and what else the kernel
// makes; what holds the engine's socket, or another one that leads out (of these, a socket itself may be granted); a
// writable one that holds a program which runs outside of sandboxes, or the operator's own claude. `environ` as in
// makeSrtSettings.
OrRefusal<ContainerSettings> makeContainerSettings(const config::ContainerPolicy& policy, const Places& places,
                                                   const ContainerPlace& place,
                                                   const std::map<std::string, std::string>& environ);

// What a container of ours adds to its agent's environment: the home, the proxy, and git's own config where it is
// mounted.
std::map<std::string, std::string> containerEnvironment(const std::string& workHome, const std::string& operatorsHome,
                                                        const std::vector<ContainerMount>& mounts);

// Addresses of this machine's interfaces, without loopback.
std::vector<std::string> ownAddresses();

}  // namespace oc::sandbox
