// What shells, sessions, editors and tools of the operator's obey, unasked, the next time that they start.
#pragma once

#include <string>
#include <vector>

namespace oc {

// Names beneath a home, sorted by nothing; a folder stands for all in it. Whoever writes one of these runs as its owner.
// ~/.ssh is not here: it is a credential, which is denied unless its owner lifts that by name.
const std::vector<std::string>& startupFiles();

// The first of them that `path` lies in or holds, as an absolute path; empty: none is. Both must be normalized; links are
// the caller's to resolve.
std::string startupFileTouched(const std::string& home, const std::string& path);

}  // namespace oc
