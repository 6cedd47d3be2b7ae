#include "run_place.h"

#include "own_files.h"

namespace oc::sandbox {

RunPlace makeRunPlace(const config::Config& config, const Places& places, const std::string& work,
                      const std::string& run, const std::map<std::string, std::string>& environ) {
  RunPlace place;
  place.work = work;
  place.run = run;
  place.workspace = places.workspace(work);
  place.runFiles = places.runFiles(run);
  place.tmp = place.runFiles + "/tmp";
  place.ownFiles = ownFiles(config, environ);
  place.agentsWrite = writtenByAgents(config, places.home);
  return place;
}

}  // namespace oc::sandbox
