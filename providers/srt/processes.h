// The processes of the agent, seen from its pid namespace's first process.
#pragma once

#include <string>
#include <sys/types.h>

#include <vector>

namespace oc::srt {

// The agent and what it started: not srt, bubblewrap, their helpers and the relays that lead to srt's proxy. Empty as
// long as the agent is not running.
std::vector<pid_t> agentProcesses();

}  // namespace oc::srt
