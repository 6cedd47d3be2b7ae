// The first process of a run's container.
#pragma once

#include "command.h"

namespace oc::gateway {

// enter [--secrets FILE] [--mount DEVICE:INODE:PATH]… [--port PORT:SOCKET]… [--wait-ms N] -- COMMAND…
//
// In this order, and the first that fails ends the container with 125 and a line that says why:
//
//   1. nothing of this process can be read by others of its user
//   2. the secret file ({"NAME": "value", …}) is read and deleted
//   3. each planned mount is the file or directory (device and inode) that was planned
//   4. 127.0.0.1:PORT is forwarded to each SOCKET, which is to accept connections within --wait-ms (10000)
//   5. COMMAND starts, with the secrets in its environment, in a session of its own, or in the terminal's foreground
//   6. the secrets are wiped here
//
// Then signals are passed on, orphans reaped, and bytes forwarded until COMMAND ends; what it left behind is killed.
// Returns COMMAND's exit code, 128 and the signal's number, 126 or 127 when it can't be executed or isn't there.
int enter(const Arguments& arguments);

}  // namespace oc::gateway
