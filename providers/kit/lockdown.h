#pragma once

#include <sys/types.h>

#include "profile.h"
#include "proto/convert.h"

namespace oc::kit {

// Gives up everything that the profile does not name, in the order that works: limits and descriptors, namespaces,
// capabilities, no_new_privs, Landlock, seccomp. Each step is checked and the result read back from the kernel. May
// return in another process than it was called in (see enterNamespaces). Throws, naming the step: then nothing may be
// served. `highestDescriptor`: everything above is closed.
Protections lockDown(const Profile& profile, int highestDescriptor, void (*onServing)(pid_t));

}  // namespace oc::kit
