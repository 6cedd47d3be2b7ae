// A process tree that nobody can leave, without a namespace: orphans come to us, and what is beneath us is found in
// /proc.
#pragma once

#include <functional>
#include <vector>

#include <sys/types.h>

namespace oc::host {

// Sends `signal` to every process beneath this one, and to none that took the number of one that has ended.
void signalDescendants(int signal);

// Stops all of them first, so that none can start others while they are being ended, then SIGKILL.
void killDescendants();

}  // namespace oc::host
