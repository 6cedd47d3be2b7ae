// Landlock by system call: Debian 12's header ends before most of what newer kernels have.
#pragma once

#include <vector>

#include "profile.h"

namespace oc::kit {

// The kernel's ABI; 0 when it has no Landlock.
int landlockAbi();

struct LandlockResult {
  bool files = false, scopes = false;
};

// Restricts this process for good to `files` (when `handleFiles`; then also to TCP connections to `ports`) and, where
// the ABI has them, to its own signals and abstract sockets. no_new_privs must be set. Throws, naming the call or the
// path.
LandlockResult restrictByLandlock(int abi, bool handleFiles, const std::vector<FileRule>& files,
                                  const std::vector<uint16_t>& ports, bool scopes);

}  // namespace oc::kit
