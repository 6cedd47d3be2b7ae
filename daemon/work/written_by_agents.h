// What an agent could have written, or could turn elsewhere by a link: nothing there is trusted by what runs outside of
// its sandbox.
#pragma once

#include <string>
#include <vector>

#include "base/places.h"
#include "daemon/config/model.h"

namespace oc::work {

// The path, what its links lead through one after the other, and where they end.
std::vector<std::string> stations(const std::string& path);

// Whether one of these is the directory, or lies in it; by name or by where that leads.
bool liesIn(const std::vector<std::string>& stations, const std::string& directory);

// Whose policy lets an agent write where this path leads through, for a sentence; empty: nobody's. Open Conduit's own
// directories of runs are agents' to write.
std::string whoMayHaveWritten(const config::Config& config, const Places& places, const std::string& path);

// Where the path leads; itself where that cannot be told.
std::string resolvedOr(const std::string& path);

}  // namespace oc::work
