// Files of the operator's that every srt run is kept from.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace oc::sandbox {

// Common credentials: unreadable unless read.allow names the very path.
std::vector<std::string> commonCredentials(const std::string& home);

// The operator's own claude. What a run wrote there would run as the operator, so no entry lifts these: ~/.claude,
// ~/.claude.json, and where CLAUDE_CONFIG_DIR in `environ` points.
std::vector<std::string> operatorsClaude(const std::string& home, const std::map<std::string, std::string>& environ);

}  // namespace oc::sandbox
