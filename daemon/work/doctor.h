// Every check that the config's bindings need, and the fix of each that fails.
#pragma once

#include <kj/async.h>

#include <vector>

#include "base/places.h"
#include "daemon/config/model.h"
#include "daemon/control/backend.h"
#include "containers.h"
#include "daemon/supervisor/supervisor.h"
#include "environment.h"

namespace oc::work {

class Doctor {
 public:
  // `own`: the daemon's environment.
  Doctor(supervisor::Supervisor& supervisor, const Places& places, const Environment& own, Containers& containers)
      : supervisor(supervisor), places(places), own(own), containers(containers) {}

  // Starts each provider once, srt's canary where a binding uses srt, and a container for each Docker context and image
  // that bindings use; looks for the secrets that the config refers to. Never breaks: what goes wrong is a line.
  kj::Promise<std::vector<control::DoctorLine>> examine(const config::Config& config);

 private:
  kj::Promise<std::vector<control::DoctorLine>> examineProviders();
  kj::Promise<std::vector<control::DoctorLine>> examineSrt(const config::Config& config);
  kj::Promise<std::vector<control::DoctorLine>> examineContainers(const config::Config& config);
  kj::Promise<std::vector<control::DoctorLine>> examineSecrets(const config::Config& config);

  supervisor::Supervisor& supervisor;
  const Places& places;
  const Environment& own;
  Containers& containers;
};

// What this machine lacks of the protections that providers want, by what live instances report.
std::vector<std::string> lackingProtections(const std::vector<supervisor::Instance*>& instances);

}  // namespace oc::work
