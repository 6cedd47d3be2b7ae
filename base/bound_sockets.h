// The sockets of this machine, and which of them lead out of a sandbox.
#pragma once

#include <string>
#include <vector>

namespace oc {

// The paths of the kernel's list, in this process' network namespace. Another file for tests.
std::vector<std::string> boundSockets(const std::string& list = "/proc/net/unix");

// What has to be hidden because of a bound socket: itself, or the directory that is full of its kind; empty: nothing.
// Those count by whose name a service is known that starts programs, types, or signs for whoever connects: container
// engines, agents of keys, buses, X servers, terminal multiplexers, editors.
std::string placeOfSocketThatLeadsOut(const std::string& path);

}  // namespace oc
