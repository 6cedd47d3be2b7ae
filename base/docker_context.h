// Where a Docker context's engine is, by the operator's own files, and a connection to it. Nothing of the environment
// counts but what the caller passes in: neither DOCKER_HOST nor DOCKER_CONTEXT, nor the context that the docker command
// line has been switched to.
#pragma once

#include <kj/io.h>

#include <string>

#include "refusal.h"

namespace oc {

struct DockerPlaces {
  std::string home;
  std::string configDir;   // what a granted DOCKER_CONFIG says; empty: ~/.docker
  std::string runtimeDir;  // what a granted XDG_RUNTIME_DIR says, for a rootless engine's socket; empty: none
  // What the environment says of the two and no grant covers: for naming the grant that is missing, and nothing else.
  std::string configDirNotGranted, runtimeDirNotGranted;
  std::string defaultSocket = "/var/run/docker.sock";
};

struct DockerEndpoint {
  std::string context;
  std::string socket;  // an absolute path
};

// An empty name is "default": the engine at /var/run/docker.sock, and where there is none, a rootless one's at
// runtimeDir/docker.sock. Any other is looked up under contexts/meta. Refuses
// (`sandbox_unavailable`) a context that is not there, naming those that are; one that cannot be read; and one whose
// endpoint is not unix://.
OrRefusal<DockerEndpoint> findDockerEndpoint(const std::string& context, const DockerPlaces& places);

// Connects, without waiting for an answer. Refuses with why and what to do: no such socket, nobody listens, no
// permission.
OrRefusal<kj::AutoCloseFd> dialDocker(const DockerEndpoint& endpoint);

}  // namespace oc
