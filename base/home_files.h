// Files beneath a home that matter to its owner's safety, by name.
#pragma once

#include <string>
#include <vector>

namespace oc {

// What shells, sessions, editors and tools obey, unasked, the next time that they start. A folder stands for all in it.
// Whoever writes one of these runs as its owner.
// ~/.ssh is not here: it is a credential, which is denied unless its owner lifts that by name.
const std::vector<std::string>& startupFiles();

// Where tools keep what they sign in with. Process sandboxes deny reading them, unless the policy lifts one by its very
// name.
const std::vector<std::string>& credentialFiles();

// The first of them that `path` lies in or holds, as an absolute path; empty: none is. Both must be normalized; links
// are the caller's to resolve.
std::string startupFileTouched(const std::string& home, const std::string& path);

}  // namespace oc
