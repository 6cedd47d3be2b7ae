// What the gateway finds out of the container that it is in.
#pragma once

#include <string>
#include <vector>

#include "address.h"

namespace oc::gateway {

// The networks of its own interfaces, without 127.0.0.0/8 and ::1, which are nobody's.
std::vector<Network> ownNetworks();

// Tries to keep this network namespace from passing on packets that are not for it; an engine sets it to do so.
void stopForwarding();
// Whether it does all the same, for IPv4 or IPv6, as the kernel says now. Throws when that can't be read.
bool forwardsPackets();

// Gives up what a gateway never needs: capabilities, new privileges, being looked into by others of its user, core
// files, and more descriptors than `descriptors`, of which it takes as many as it may have. Returns how many these are.
// Throws, naming the step.
size_t giveUpPrivileges(size_t descriptors);

}  // namespace oc::gateway
