// What an agent could have written, or could turn elsewhere by a link: nothing there is trusted by what runs outside of
// its sandbox.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"

namespace oc::work {

// The path, each link that has to be followed on the way to what it names, and where they end.
std::vector<std::string> stations(const std::string& path);

// Whether one of these is the directory, or lies in it; by name or by where that leads.
bool liesIn(const std::vector<std::string>& stations, const std::string& directory);

// Whose policy lets an agent write where this path leads through, for a sentence; empty: nobody's. Open Conduit's own
// directories of runs are agents' to write.
std::string whoMayHaveWritten(const config::Config& config, const Places& places, const std::string& path);

// Which binding's policy lets its agent turn the path elsewhere, by a link on the way to it, or write in it; empty:
// none. That the path itself is replaced every sandbox forbids (`SrtParts::all`).
std::string whoMayTurn(const config::Config& config, const Places& places, const std::string& path);

// Refuses (`sandbox_denied`) when that is so of one of these, which run outside of sandboxes. Empty ones are left out.
std::optional<Refusal> refuseTurnedPrograms(const config::Config& config, const Places& places,
                                            const std::vector<std::string>& programs);

// Where the path leads; itself where that cannot be told.
std::string resolvedOr(const std::string& path);

}  // namespace oc::work
