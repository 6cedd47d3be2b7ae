// Where things lie (XDG), for one user. Nothing here makes a directory.
#pragma once

#include <string>

namespace oc {

struct Places {
  std::string home;
  std::string configDir;   // $XDG_CONFIG_HOME/open-conduit
  std::string stateDir;    // $XDG_STATE_HOME/open-conduit: database, operator token
  std::string dataDir;     // $XDG_DATA_HOME/open-conduit: works, runs, srt
  std::string runtimeDir;  // $XDG_RUNTIME_DIR/open-conduit, else /tmp/open-conduit-UID

  std::string config() const { return configDir + "/config.json"; }
  std::string database() const { return stateDir + "/state.db"; }
  std::string operatorToken() const { return stateDir + "/operator-token"; }
  std::string controlSocket() const { return runtimeDir + "/control.sock"; }
  std::string worksDir() const { return dataDir + "/works"; }
  std::string runsDir() const { return dataDir + "/runs"; }
  std::string workDir(const std::string& work) const { return worksDir() + "/" + work; }
  std::string workspace(const std::string& work) const { return workDir(work) + "/workspace"; }
  std::string workHome(const std::string& work) const { return workDir(work) + "/home"; }
  std::string workRemoving(const std::string& work) const { return workDir(work) + "/removing"; }
  // Empty, and as old as the workspace was when nobody had worked in it.
  std::string workCloned(const std::string& work) const { return workDir(work) + "/cloned"; }
  std::string workSaving(const std::string& work) const { return workDir(work) + "/saving"; }
  std::string runDir(const std::string& run) const { return runsDir() + "/" + run; }
  std::string runFiles(const std::string& run) const { return runDir(run) + "/files"; }
  std::string runPrivate(const std::string& run) const { return runDir(run) + "/private"; }
  std::string runLog(const std::string& run) const { return runPrivate(run) + "/log"; }
  std::string runSettings(const std::string& run) const { return runPrivate(run) + "/srt-settings.json"; }
  std::string runSecrets(const std::string& run) const { return runPrivate(run) + "/secrets"; }
  std::string runNetworkLog(const std::string& run) const { return runPrivate(run) + "/network"; }
  std::string runToolbelt(const std::string& run) const { return runDir(run) + "/toolbelt.sock"; }
  std::string runSocket(const std::string& run) const { return runPrivate(run) + "/shim.sock"; }
};

// From the environment, falling back to the password database for the home. A relative XDG variable is
// ignored, as the specification says. Throws when there is no home.
Places findPlaces();

// Socket paths end at 107 bytes on Linux. Throws an explanation that names the path, its length and the
// variable to shorten.
void requireSocketPathFits(const std::string& path);

}  // namespace oc
