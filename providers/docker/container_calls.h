// The calls that any container of ours is made and started by.
#pragma once

#include <string>

#include "base/json.h"
#include "engine.h"
#include "step.h"

namespace oc::docker {

// What the calls are for: `what` completes "the engine could not make …", as "the gateway's container" does.
struct Making {
  std::string name, what, context;
};

// Sets `id`. Refuses what the Engine only warns of: it says which of the things that were asked for it left out.
Step createContainer(Engine& engine, const Json& body, Making making, std::string& id);
Step startContainer(Engine& engine, const std::string& id, Making making);

}  // namespace oc::docker
