// The folders of one run, beneath the daemon's own for runs.
#pragma once

#include <string>

#include "base/places.h"

namespace oc::work {

// Makes those that are not there, for the operator alone: its private part, its files with a folder for temporary ones
// and, for a container, the one that brings its agent and secrets. Throws, naming the path.
void makeRunFolders(const Places& places, const std::string& run, bool container);

}  // namespace oc::work
