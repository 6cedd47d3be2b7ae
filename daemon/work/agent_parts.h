// What the two ways to start an agent have in common: agent.cc for process trees, container_agent.cc for containers.
#pragma once

#include "agent.h"

namespace oc::work {

constexpr auto agentCallLimit = 30 * kj::SECONDS;

// What the daemon offers to a run's shim.
proto::RunHost::Client hostFor(AgentListener& listener);

// The run's socket, on which a later daemon finds the shim.
kj::AutoCloseFd listenAt(const std::string& path);

void fillSetup(proto::RunSetup::Builder setup, const AgentSpec& spec);

}  // namespace oc::work
