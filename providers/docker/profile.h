#pragma once

#include "providers/kit/profile.h"

namespace oc::docker {

// What the Engine's client may do: speak over the connections that it was given.
kit::Profile profile();

}  // namespace oc::docker
