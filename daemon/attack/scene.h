// Where a battery takes place: the directories of a Work and of a run, those that the targets lie in, and the stand
// that puts these up.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <map>
#include <string>

#include "base/places.h"
#include "base/spawn.h"
#include "daemon/work/environment.h"

namespace oc::attack {

using TargetMap = std::map<std::string, std::string>;

class Scene {
 public:
  Scene(const Places& places, const work::Environment& own, std::string program);
  // Nothing of it is left.
  ~Scene() noexcept(false);
  KJ_DISALLOW_COPY(Scene);

  const std::string& run() const { return runId; }
  const std::string& work() const { return workId; }
  const TargetMap& targets() const { return told; }
  std::string workspace() const { return places.workspace(workId); }
  // A directory outside that the operator has, and that no policy is expected to grant.
  const std::string& outside() const { return outsideDir; }

  // All attacks from where nothing is between; what they print.
  std::string attackOutside(const TargetMap& more);
  // Targets that were spoilt are as they were.
  void putUpAgain();
  // The program and its targets, in the run's own directory: the command that tries all attacks in a run.
  std::vector<std::string> putIntoRun(const TargetMap& more);

 private:
  void makeDirectories();
  void startStand();
  void readTargets();
  std::string targetsText(const TargetMap& more) const;
  std::string credential() const;

  const Places& places;
  std::string program, runId, workId, besideId;
  std::string ownDir, besideDir, outsideDir, runtimeDir, rootDir;
  Spawned stand{0, nullptr};
  kj::AutoCloseFd toStand, fromStand;
  TargetMap told;
};

}  // namespace oc::attack
