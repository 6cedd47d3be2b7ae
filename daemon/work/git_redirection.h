// A file that moves a repository's config elsewhere, which no mount can forbid as long as it is not there.
#pragma once

#include <string>

namespace oc::work {

// Removes .git/commondir of a workspace: a clone has none, and git would take its config and hooks from where it
// points. For when nothing of the run is left. Follows no link. True when there was one.
bool removeGitRedirection(const std::string& workspace);

}  // namespace oc::work
