// What makes plain `git commit` and `git push` work in a run, whatever the machine or image has.
#pragma once

#include <string>

#include "environment.h"

namespace oc::work {

struct GitSetup {
  std::string file, text;   // to be written there, in the run's own directory
  Environment environment;  // names it
};

// A config file that takes the system's place, and so has the lowest rank: what the operator's or the workspace's own
// says goes before. It includes the system's, trusts the workspace, whoever owns it, pushes the current branch under
// its name, and has an author for a machine without one.
GitSetup setUpGit(const std::string& runFiles, const std::string& workspace);

}  // namespace oc::work
