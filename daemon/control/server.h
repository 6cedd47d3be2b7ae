// The control socket: a listening Unix socket (0600 in a 0700 directory) that speaks proto/control.capnp.
#pragma once

#include <kj/async-io.h>

#include <string>

#include "backend.h"
#include "base/crypto.h"

namespace oc::control {

// Accepts on an already bound and listening socket until cancelled. Connections of other users are closed
// (SO_PEERCRED). At most 64 connections at a time; a wrong token is answered after a second.
kj::Promise<void> serve(kj::AsyncIoContext& io, kj::Own<kj::ConnectionReceiver> socket, const SecretBytes& token,
                        Backend& backend);

// The server's Front on its own, for tests over an in-process pipe.
proto::Front::Client makeFront(kj::Timer& timer, const SecretBytes& token, Backend& backend);

}  // namespace oc::control
