#include "run_folders.h"

#include "base/fd.h"

namespace oc::work {

void makeRunFolders(const Places& places, const std::string& run, bool container) {
  for (auto& folder : {places.runsDir(), places.runDir(run), places.runPrivate(run), places.runFiles(run),
                       places.runFiles(run) + "/tmp"}) {
    makePrivateDirectory(folder);
  }
  if (container) makePrivateDirectory(places.runSecrets(run));
}

}  // namespace oc::work
