// An agent without a sandbox: it runs as the operator, and what it started ends with it.
#pragma once

#include "providers/kit/agent_tree.h"
#include "providers/kit/profile.h"

namespace oc::host {

kit::Profile profile();

// Makes this process the one that orphans come to.
kj::Own<kit::AgentTree> makeTree(kit::Context& context);

}  // namespace oc::host
