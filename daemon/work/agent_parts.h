// What the two ways to start an agent have in common: agent.cc for process trees, container_agent.cc for containers.
#pragma once

#include <sys/un.h>

#include "agent.h"

namespace oc::work {

constexpr auto agentCallLimit = 30 * kj::SECONDS;

// What the daemon offers to a run's shim.
proto::RunHost::Client hostFor(AgentListener& listener);

// Text of a shim's, as it may be shown and kept: without what is secret, and no longer than that.
std::string bounded(capnp::Text::Reader text, size_t limit);

// Kills the process if it is still a locked-down shim: its number may be another's by now.
void killShim(pid_t pid);

// Throws when the path is too long for a socket.
struct sockaddr_un addressOf(const std::string& path);
kj::AutoCloseFd unixSocket();

// The run's socket, on which a later daemon finds the shim.
kj::AutoCloseFd listenAt(const std::string& path);

void fillSetup(proto::RunSetup::Builder setup, const AgentSpec& spec);

}  // namespace oc::work
