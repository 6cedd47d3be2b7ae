// What runs inside the sandbox: a script in the scratch directory that sets the agent's environment and becomes the
// agent.
//
// srt itself gets a fixed environment and a fixed command. So nothing of the agent's reaches the programs that run
// outside the sandbox (a NODE_OPTIONS would be code in srt), no secret is in an argument that /proc shows, options
// behind the command are not srt's, and the length of the command is not what srt's own quoting leaves of one argument.
#pragma once

#include <optional>
#include <string>

#include "base/refusal.h"
#include "providers/kit/agent_tree.h"

namespace oc::srt {

// Refuses a variable that a shell cannot set or that srt sets itself, and a command longer than the kernel takes.
std::optional<Refusal> checkCommand(const kit::AgentCommand& command);

// `ours`: names in srt's own environment, which are not the agent's unless it sets them.
std::string agentScript(const kit::AgentCommand& command, const std::vector<std::string>& ours);

}  // namespace oc::srt
