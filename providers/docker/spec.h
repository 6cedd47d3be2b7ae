// What a run gets, as proto/docker.capnp has it, checked; and as the Engine wants to be told it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/refusal.h"
#include "docker.capnp.h"

namespace oc::docker {

struct Mount {
  std::string source, target;
  bool writable = false;
};

struct RunSpec {
  std::string owner, run, role, planSha256;
  std::string image, gatewayImage;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory, user, hostname;
  std::vector<Mount> mounts;
  uint64_t memoryBytes = 0, nanoCpus = 0, pids = 0;
  bool tty = false, input = false, network = false, unlimited = false;
  unsigned columns = 0, rows = 0;  // of the terminal when it starts
  std::string preparedGateway;     // the name of one that was made ahead; empty: the run's own
};

// A gateway's container and volume, of a run or made ahead of one.
struct GatewaySpec {
  std::string owner, name;  // the run's, or one of its own
  std::string image, user;
  std::string planSha256;  // of the run; empty: made ahead
  bool unlimited = false;
};

// Refuses what has no proper form: names, paths, images that are no ids, a user that is no pair of numbers. The daemon
// decided all of it; this is what holds when the daemon was wrong.
OrRefusal<RunSpec> readSpec(proto::RunSpec::Reader reader);
OrRefusal<GatewaySpec> readSpec(proto::GatewaySpec::Reader reader);
GatewaySpec gatewayOf(const RunSpec& spec);

// The bodies of the Engine's calls.
Json agentContainer(const RunSpec& spec);
Json gatewayContainer(const GatewaySpec& spec);
Json gatewayVolume(const GatewaySpec& spec);
Json egressNetwork(const std::string& owner);

// Nothing when a network, as the Engine tells of it, is the one of egressNetwork.
std::optional<Refusal> refuseEgress(const Json& network, const std::string& owner);

}  // namespace oc::docker
