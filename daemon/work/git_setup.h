// What makes plain `git commit` and `git push` work in a run, whatever the machine or image has.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/model.h"
#include "environment.h"

namespace oc::work {

struct GitSetup {
  std::string file, text;   // to be written there, in the run's own directory
  Environment environment;  // names it
};

// A config file that takes the system's place, and so has the lowest rank: what the operator's or the workspace's own
// says goes before. It includes the system's, trusts the workspace, whoever owns it, pushes the current branch under
// its name, and has an author for a machine without one. At `tokenHosts`, over HTTPS, git signs in with the token that
// is in GH_TOKEN, else in GITHUB_TOKEN, if there is one.
GitSetup setUpGit(const std::string& runFiles, const std::string& workspace,
                  const std::vector<std::string>& tokenHosts);

// Where a personal access token among a run's secrets counts: github.com and, for a sandboxed binding with a
// connection, the host of its API. None without a sandbox.
std::vector<std::string> hostsOfTokens(const config::Config& config, const config::Binding& binding);

}  // namespace oc::work
