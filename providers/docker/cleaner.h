// Finding and removing what is ours, by its labels.
#pragma once

#include <kj/timer.h>

#include <string>
#include <vector>

#include "engine.h"
#include "step.h"

namespace oc::docker {

struct FoundContainer {
  std::string id, name, owner, run, role, imageId, planSha256, gateway;
  bool running = false;
};

struct Removed {
  uint32_t count = 0;
  std::vector<std::string> left;  // what could not be removed, each with why
};

// `second` may be the same connection as `first`; with two, containers are removed two at a time.
class Cleaner {
 public:
  Cleaner(kj::Timer& timer, Engine& first, Engine& second, std::string context);

  // All containers with these labels. An empty `run`: of all runs.
  kj::Promise<OrRefusal<std::vector<FoundContainer>>> find(const std::string& owner, const std::string& run);
  // Kills and removes the run's containers, then its volume, and those of the gateway that was made ahead for it
  // (empty: none). What is gone already, or on its way, is fine.
  kj::Promise<OrRefusal<Removed>> removeRun(const std::string& owner, const std::string& run,
                                            const std::string& gateway = "");
  // Everything of this owner but the runs in `keep`, and the egress network, when nothing uses it.
  kj::Promise<OrRefusal<Removed>> sweep(const std::string& owner, std::vector<std::string> keep);

 private:
  struct Task;

  kj::Promise<std::optional<Refusal>> collect(Task& task, size_t which);
  kj::Promise<void> removeContainers(Task& task, Engine& engine);
  kj::Promise<void> removeContainer(Task& task, Engine& engine, FoundContainer container, int attempt);
  kj::Promise<void> removeVolumes(Task& task);
  kj::Promise<void> removeVolume(Task& task, std::string name, int attempt);
  kj::Promise<void> removeEgress(Task& task);
  kj::Promise<OrRefusal<Removed>> removeAll(kj::Own<Task> task);

  kj::Timer& timer;
  Engine& first;
  Engine& second;
  std::string context;
};

}  // namespace oc::docker
