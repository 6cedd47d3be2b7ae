// What an agent gets in its environment, besides its secrets: an allow list of ours, and the binding's `env`.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/places.h"
#include "daemon/config/model.h"

namespace oc::work {

using Environment = std::map<std::string, std::string>;

struct EnvironmentRequest {
  const config::Binding& binding;
  const Places& places;
  std::string title, bodyFile, work, run, branch;
  Environment added;  // what the sandbox adds (TMPDIR, …)
};

// Without any secret: those go beside it, see secrets.h.
Environment makeEnvironment(const EnvironmentRequest& request, const Environment& own);

}  // namespace oc::work
