// Files of the operator's that are Open Conduit's own wherever they lie, and those that are any agent's to write.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/config/model.h"

namespace oc::sandbox {

// The config's file and where its links lead; the file of each secret that a scope or connection refers to by `file:`,
// whichever binding selects it; and our own directories by the names that `environ` (HOME, XDG_…) gives them, where
// links are on the way to them. Absolute; they need not exist.
std::vector<std::string> ownFiles(const config::Config& config, const std::map<std::string, std::string>& environ);

// What the policies of the config's bindings grant to be written, each folder by its name; those of a run's own are
// left out.
std::vector<std::string> writtenByAgents(const config::Config& config, const std::string& home);

}  // namespace oc::sandbox
