// What the daemon grants a peer that lives long and carries others' calls: a run's shim. It may send for as long as it
// lives, but not as fast as it likes, and flow control and GuardedNetwork bound what it holds of ours at any time.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>

#include "rpc.h"

namespace oc {

// Messages of 512 KiB (arguments have 256), 2 MiB of calls that are not answered yet (an honest shim has 1), no total.
RpcLimits shimLimits();

// `stream`, of which 4 MiB can be read at once, and then 1 MiB a second: some 4,000 calls a second. What is beyond
// waits.
kj::Own<kj::AsyncIoStream> paced(kj::Own<kj::AsyncIoStream> stream, kj::Timer& timer);

}  // namespace oc
