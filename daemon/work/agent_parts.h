// What the two ways to start an agent have in common: agent.cc for process trees, container_agent.cc for containers.
#pragma once

#include <kj/refcount.h>
#include <sys/un.h>

#include "agent.h"

namespace oc::work {

constexpr auto agentCallLimit = 30 * kj::SECONDS;

// Between a shim's events and who listens to them, who may be gone before: Cap'n Proto does not cancel a call when its
// connection ends.
class EventDoor final : public kj::Refcounted {
 public:
  explicit EventDoor(AgentListener& listener) : listener(&listener) {}
  // What is under way ends now, and what comes later is refused.
  void close() {
    listener = nullptr;
    pending.cancel("the run is over");
  }

  AgentListener* listener;  // null: closed
  kj::Canceler pending;
};

// What the daemon offers to a run's shim. Events are taken at a pace: a hundred at once, and then twenty a second.
proto::RunHost::Client hostFor(kj::Own<EventDoor> door, kj::Timer& timer);

// Text of a shim's, as it may be shown and kept: without what is secret, and no longer than that.
std::string bounded(capnp::Text::Reader text, size_t limit);

// Kills the process if it is still a locked-down shim: its number may be another's by now.
void killShim(pid_t pid);

// What a shim keeps of its logs' limits by itself, the kernel keeps for one that was taken over: bytes, a little more.
uint64_t shimFileLimit(const AgentSpec& spec);

// Throws when the path is too long for a socket.
struct sockaddr_un addressOf(const std::string& path);
kj::AutoCloseFd unixSocket();

// The run's socket, on which a later daemon finds the shim.
kj::AutoCloseFd listenAt(const std::string& path);

void fillSetup(proto::RunSetup::Builder setup, const AgentSpec& spec);

}  // namespace oc::work
