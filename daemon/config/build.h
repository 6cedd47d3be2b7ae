// From the checked tree to the Config.
#pragma once

#include "document.h"
#include "load.h"

namespace oc::config {

// For a tree in which no error was found.
Config buildConfig(const Node& root, const Environment& environment);

}  // namespace oc::config
