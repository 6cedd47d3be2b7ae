// What an agent gets in its environment: an allow list of ours, the binding's `env`, and the secrets that it selected.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"

namespace oc::work {

using Environment = std::map<std::string, std::string>;

// The daemon's own environment, as a map.
Environment ownEnvironment();

struct EnvironmentRequest {
  const config::Binding& binding;
  const config::Scope& scope;
  const Places& places;
  std::string title, bodyFile, work, run, branch;
  Environment added;              // what the sandbox adds (TMPDIR, …)
};

// Refuses (`secret_unavailable`) a secret that cannot be read, naming it and never its value.
OrRefusal<Environment> makeEnvironment(const EnvironmentRequest& request, const Environment& own);

// The value behind "env:NAME" or "file:/path" (a regular file of ours, 0600, no link, at most 64 KiB, one trailing newline
// dropped). Refuses otherwise, and `keyring:`, for which there is no provider yet.
OrRefusal<std::string> readSecret(const std::string& name, const std::string& reference, const Environment& own);

}  // namespace oc::work
