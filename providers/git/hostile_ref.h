// What a branch of a hostile repository points at, read without git and without following anything.
#pragma once

#include <optional>
#include <string>

namespace oc::git {

// The commit id that refs/heads/`branch` of `gitDir` has, as a loose ref or among the packed ones. Nothing when there
// is none. Throws, saying what it is, when it is no plain ref: a link, a reference to another ref, no id. `branch` is a
// valid name.
std::optional<std::string> readBranch(const std::string& gitDir, const std::string& branch);

// Opens a directory or file beneath `root` name by name, following no link on the way; -1 with errno when it cannot.
int openBeneath(const std::string& root, const std::string& relative, int flags);

}  // namespace oc::git
