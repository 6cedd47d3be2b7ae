// Waiting for the end of a process on KJ's loop, by pidfd: captureChildExit would steal others' children.
#pragma once

#include <kj/async-unix.h>
#include <kj/io.h>

namespace oc {

struct ProcessEnd {
  bool known = false;  // false: not our child, or somebody else reaped it
  bool signaled = false;
  int code = 0;  // exit code, or the signal's number
};

// Resolves when the process has ended, and reaps it if it is our child. `pidfd` must stay open until then.
kj::Promise<ProcessEnd> whenEnded(kj::UnixEventPort& port, int pidfd);

}  // namespace oc
