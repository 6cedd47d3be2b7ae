// The settings file, as far as we act on it ourselves.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace oc::srt {

struct Settings {
  std::vector<std::string> denyRead, allowWrite, denyWrite;
  bool allUnixSockets = false;
};

// Throws on a file that is not there or is no settings file.
Settings readSettings(const std::string& path);
Settings parseSettings(const Json& json);

}  // namespace oc::srt
