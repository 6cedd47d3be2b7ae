// What the Engine says of itself and of a run's containers, as the contract has it.
#pragma once

#include "cleaner.h"
#include "docker.capnp.h"
#include "engine.h"
#include "step.h"

namespace oc::docker {

// Asks for the version and refuses one that will not do; then for the rest.
Step tellEngine(Engine& engine, proto::Engine::Builder to, const std::string& context);

// Looks at each of `found` in turn. One that goes meanwhile is left out.
Step tellContainers(Engine& engine, std::vector<FoundContainer> found, proto::Docker::InspectResults::Builder results,
                    const std::string& context);

}  // namespace oc::docker
