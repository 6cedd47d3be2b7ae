// Giving the gateway a port of the container's loopback: it accepts the connections itself, so that nothing of ours
// stands between it and the agent.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <string>

namespace oc::gateway {

// Listens at 127.0.0.1:port; throws, naming it.
kj::AutoCloseFd listenAtPort(uint16_t port);

// Gives `listener` to the gateway that waits at `path` (gateway/handover.h), and sees that it was taken. One that is
// not there yet is waited for, until `deadline` (milliseconds of the monotonic clock): then it throws, naming the path.
// Returns 0, or the number of a signal from `signals` that asked to end meanwhile.
int handOver(kj::AutoCloseFd listener, const std::string& path, int64_t deadline, int signals);

}  // namespace oc::gateway
