// Doctor's check: srt's parts, and a canary under srt, started just as an agent is, that tries what it must not be able
// to do. Beside each denial it does the same thing where it is granted: a probe that cannot succeed anywhere proves
// nothing.
#pragma once

#include <vector>

#include "parts.h"
#include "providers/kit/agent_tree.h"
#include "providers/kit/reaper.h"

namespace oc::srt {

kj::Promise<std::vector<kit::Check>> runChecks(const Job& job, kit::Context& context, kit::Reaper& reaper);

}  // namespace oc::srt
