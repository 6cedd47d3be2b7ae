#pragma once

#include "providers/kit/profile.h"

namespace oc::keyring {

// It needs the socket that it is given, and nothing of the system. What can be asked for over that socket is another
// matter: see docs/security.md.
kit::Profile profile();

}  // namespace oc::keyring
