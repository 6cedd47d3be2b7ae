// Whether what is mounted is what was planned.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace oc::gateway {

struct PlannedMount {
  dev_t device = 0;
  ino_t inode = 0;
  std::string path;
};

// "DEVICE:INODE:PATH", both numbers decimal as stat(2) has them. Throws, naming the text.
PlannedMount readPlannedMount(std::string_view text);

// Throws, naming the path, when another file or directory is there, or none: a source that was swapped for a link after
// it was checked shows here, and the agent has not begun.
void checkMount(const PlannedMount& mount);

}  // namespace oc::gateway
