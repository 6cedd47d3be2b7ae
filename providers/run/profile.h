#pragma once

#include "providers/kit/profile.h"

namespace oc::run {

// What a shim may do: move bytes between the descriptors that it was given.
kit::Profile profile();

}  // namespace oc::run
