// The instance's own view of the system.
#pragma once

#include <string>
#include <vector>

#include "profile.h"
#include "proto/convert.h"

namespace oc::kit {

// Enters the namespaces that the profile names and that this machine grants, one's own uid and gid mapped onto
// themselves, and notes the wanted ones that are missing. With a pid namespace the process forks: the parent of the
// spawned process gets the child as its own child (CLONE_PARENT), `onServing` is called in the process that goes away
// with the pid of the one that stays, before that one returns from here. Without, `onServing` is called with one's own
// pid. Throws, naming the step, when a required one cannot be had.
void enterNamespaces(const Profile& profile, Protections& protections, void (*onServing)(pid_t));

}  // namespace oc::kit
