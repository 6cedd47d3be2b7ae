// Entering the agent's own mount namespaces, to cover what it may not see.
//
// The instance has no capability. But it lives in the parent of the user namespaces that bubblewrap makes, with the uid
// that owns them, and that is what the kernel asks of who enters them (user_namespaces(7)).
#pragma once

#include <string>
#include <vector>

namespace oc::srt {

struct Covering {
  size_t sandboxes = 0;  // mount namespaces that were looked at
  size_t covered = 0;    // those of them in which something was exposed
  std::string failure;   // empty, or what could not be covered and why
};

// Where a path shows in a sandbox what it shows here, an empty directory or /dev/null comes over it there.
Covering coverInSandboxes(const std::vector<std::string>& paths);

}  // namespace oc::srt
