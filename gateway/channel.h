// What main puts together: the channel as one stream, and the loop of the sockets inside of KJ's.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include "loop.h"

namespace oc::gateway {

// Standard input and output as one stream.
kj::Own<kj::AsyncIoStream> standardStream(kj::LowLevelAsyncIoProvider& io);

// Turns the loop whenever it has something to do; never ends.
kj::Promise<void> drive(Loop& loop, kj::UnixEventPort::FdObserver& observer);

}  // namespace oc::gateway
