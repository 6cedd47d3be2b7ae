// For a build of another version of the protocol: whoever names the version names the one after it.
#pragma once

#include "common.capnp.h"

namespace oc::proto {
constexpr uint32_t versionAfter = PROTOCOL_VERSION + 1;
}
#define PROTOCOL_VERSION versionAfter
