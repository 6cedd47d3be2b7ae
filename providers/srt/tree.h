#pragma once

#include "parts.h"
#include "providers/kit/agent_tree.h"

namespace oc::srt {

// An agent under srt, in this process's own pid namespace.
kj::Own<kit::AgentTree> makeTree(Job job, kit::Context& context);

}  // namespace oc::srt
