// What the daemon has for runs in containers: the Engines that bindings name, and the checks that they have passed.
#pragma once

#include "container_check.h"
#include "daemon/config/model.h"
#include "engine.h"
#include "environment.h"

namespace oc::work {

class Containers {
 public:
  // `own` is the daemon's environment; `programs` the folder of Open Conduit's programs. Makes the installation's label
  // in the state directory where there is none.
  Containers(supervisor::Supervisor& supervisor, const Places& places, const Environment& own, std::string programs);

  // Where the Engine of a Docker context listens, by the operator's own files. Of the environment only what
  // settings.extensions.docker.pass_env grants counts. Refuses (`sandbox_unavailable`) a context that there is none of,
  // or whose endpoint is no Unix socket.
  OrRefusal<EngineFacts> find(const config::Config& config, const std::string& context) const;

  // Of every context that a binding uses and that can be found.
  std::vector<std::string> sockets(const config::Config& config) const;

  const std::string& programs() const { return programsFolder; }
  // As name@sha256:… or an id; empty: this build has none and none was named.
  const std::string& gatewayImage() const { return gateway; }

 private:
  const Places& places;
  const Environment& own;
  std::string programsFolder, gateway;

 public:
  Engines engines;
  ContainerChecks checks;
};

}  // namespace oc::work
