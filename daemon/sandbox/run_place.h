// Where one run's own things lie, for the settings of its sandbox.
#pragma once

#include <map>
#include <string>

#include "base/places.h"
#include "daemon/config/model.h"
#include "srt_settings.h"

namespace oc::sandbox {

// Of the run `run` of the Work `work`: its folders, and what of the config no agent may see or has a say in. `environ`
// as for ownFiles.
RunPlace makeRunPlace(const config::Config& config, const Places& places, const std::string& work,
                      const std::string& run, const std::map<std::string, std::string>& environ);

}  // namespace oc::sandbox
