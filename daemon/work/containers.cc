#include "containers.h"

#include <algorithm>
#include <set>

#include "base/docker_context.h"
#include "daemon/release.h"

namespace oc::work {

namespace {

// A release build carries the digest of the image that was built with it.
std::string gatewayImageOf(const Environment& own) {
  auto named = own.find("OPEN_CONDUIT_GATEWAY_IMAGE");
  return named == own.end() ? std::string(OPEN_CONDUIT_GATEWAY_IMAGE) : named->second;
}

std::string valueOf(const Environment& own, const std::string& name) {
  auto found = own.find(name);
  return found == own.end() ? "" : found->second;
}

}  // namespace

Containers::Containers(supervisor::Supervisor& supervisor, const Places& places, const Environment& own,
                       std::string programs)
    : places(places),
      own(own),
      programsFolder(std::move(programs)),
      gateway(gatewayImageOf(own)),
      engines(supervisor, ownerLabelOf(places)),
      checks(supervisor, engines, places, programsFolder, gateway) {}

OrRefusal<EngineFacts> Containers::find(const config::Config& config, const std::string& context) const {
  auto extension = config.settings.extensions.find("docker");
  auto granted = [&](const std::string& name) {
    if (extension == config.settings.extensions.end()) return false;
    auto& names = extension->second.passEnv;
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  DockerPlaces where;
  where.home = places.home;
  (granted("DOCKER_CONFIG") ? where.configDir : where.configDirNotGranted) = valueOf(own, "DOCKER_CONFIG");
  (granted("XDG_RUNTIME_DIR") ? where.runtimeDir : where.runtimeDirNotGranted) = valueOf(own, "XDG_RUNTIME_DIR");
  auto endpoint = findDockerEndpoint(context, where);
  if (!endpoint.ok()) return endpoint.refusal();
  EngineFacts facts;
  facts.context = endpoint.value().context;
  facts.socket = endpoint.value().socket;
  return facts;
}

std::vector<std::string> Containers::sockets(const config::Config& config) const {
  std::set<std::string> found;
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      if (!binding.container) continue;
      auto engine = find(config, binding.container->context);
      if (engine.ok()) found.insert(engine.value().socket);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace oc::work
