// From the store's rows to what the control socket tells of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "control.capnp.h"
#include "daemon/control/backend.h"

namespace oc::control {

// The row that `id` names: in full, or by a beginning that only one of the newest 10,000 has. Refuses (`run_unknown`,
// `work_unknown`, `id_ambiguous`, naming the candidates).
OrRefusal<state::RunRow> findRun(state::Store& store, const std::string& id);
OrRefusal<state::WorkRow> findWork(state::Store& store, const std::string& id);

void fillRun(proto::Run::Builder to, const state::RunRow& run, const state::WorkRow& work);
void fillWork(proto::Work::Builder to, const state::WorkRow& work, const std::vector<std::string>& runs,
              const Places& places);
// The latest 100 that its runs left on it.
void fillNotes(proto::Work::Builder to, state::Store& store, const std::string& work);

// The newest first, as many as the bounds of the schema allow. `work` empty: of all Work.
void fillRuns(proto::Control::ListRunsResults::Builder results, state::Store& store, const std::string& work,
              uint32_t limit);
void fill(proto::RunEvent::Usage::Builder to, const state::Usage& from);
void add(state::Usage& sum, const state::Usage& one);
void fillAllWork(proto::Control::ListWorkResults::Builder results, state::Store& store, const Places& places,
                 uint32_t limit);

}  // namespace oc::control
