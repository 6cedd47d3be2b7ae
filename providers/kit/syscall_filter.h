// System calls that a provider and what it starts may not make.
#pragma once

#include <string>
#include <vector>

#include "profile.h"

namespace oc::kit {

// The names on a list, for tests and documentation.
std::vector<std::string> deniedCalls(SeccompList list);

// Loads the filter for good. no_new_privs must be set. Throws, naming the call that could not be resolved or added.
void restrictBySeccomp(const Profile& profile);

}  // namespace oc::kit
