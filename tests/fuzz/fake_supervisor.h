// In the place of the supervisor: each instance that the daemon starts is a hostile peer in this process, and no
// process.
#pragma once

#include <kj/async-io.h>

#include <memory>
#include <vector>

#include "hostile_peer.h"

namespace oc::fuzz {

// The live ones' other ends, oldest first.
std::vector<HostilePeer*> livePeers();
// Those of instances that are gone are forgotten.
void forgetPeers();
// Starting an instance fails from now on, or does not.
void failStarts(bool fail);

}  // namespace oc::fuzz
