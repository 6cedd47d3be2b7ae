// What a service outside, as GitHub, is told of runs, and what it gives to them. Unset: there is none.
#pragma once

#include <kj/async.h>

#include <functional>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "daemon/config/model.h"
#include "daemon/control/backend.h"
#include "daemon/state/store.h"
#include "environment.h"

namespace oc::work {

struct Hooks {
  // git's variables in a run that is being prepared, beneath what the binding sets: whom it commits as, and how it
  // signs in. `helper` is the command of git's credential helper; empty: the run may not sign in by us. A refusal is
  // the run's.
  std::function<kj::Promise<OrRefusal<Environment>>(const state::WorkRow& work, const config::Binding& binding,
                                                    const std::string& helper)>
      git;
  // A run's state is in the database. Called again after a restart for none.
  std::function<void(const state::WorkRow& work, const state::RunRow& run)> onState;
  // Another config is in force.
  std::function<void(const config::Config& config)> onReload;
  // Doctor's lines.
  std::function<kj::Promise<std::vector<control::DoctorLine>>()> doctor;
};

}  // namespace oc::work
