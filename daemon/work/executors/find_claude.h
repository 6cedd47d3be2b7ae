#pragma once

#include <string>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"
#include "daemon/work/environment.h"

namespace oc::work {

// The program claude for a run of this binding on the host, as a path with its links resolved: what
// settings.extensions.claude.program names, else the first in the daemon's PATH, in ~/.local/bin, /usr/local/bin or
// /usr/bin. Refuses (`executor_unavailable`) when there is none, and (`sandbox_denied`) one that an agent of some
// sandboxed binding could have written, or that this binding's sandbox cannot read.
OrRefusal<std::string> findClaude(const config::Config& config, const config::Binding& binding, const Places& places,
                                  const Environment& own);

}  // namespace oc::work
