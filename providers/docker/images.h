// Images, by their digest or their id.
#pragma once

#include "engine.h"
#include "step.h"

namespace oc::docker {

struct Image {
  std::string id, os, architecture;
  std::vector<std::string> repoDigests;
  uint64_t size = 0;
};

// "name@sha256:…", "name:tag@sha256:…" (the tag says nothing beside a digest and is left out), or an id, "sha256:…".
// Refuses everything else.
OrRefusal<std::string> pinnedReference(const std::string& reference);

// Nothing when the engine has no such image. Refuses one for another architecture than the engine's, `architecture`.
kj::Promise<OrRefusal<std::optional<Image>>> findImage(Engine& engine, const std::string& reference,
                                                       const std::string& architecture, const std::string& context);

// Has the Engine pull it, without signing in anywhere.
Step pullImage(Engine& engine, const std::string& reference, const std::string& context);

}  // namespace oc::docker
