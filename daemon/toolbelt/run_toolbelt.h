// One run's toolbelt as a capability: exactly its operations, until it is revoked. What comes over it is the shim's
// word, and a shim that was taken over may say anything.
#pragma once

#include <kj/timer.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/state/store.h"
#include "fair_queue.h"
#include "owner.h"
#include "toolbelt.capnp.h"

namespace oc::toolbelt {

// What the toolbelt may do to the run's Work. It goes through the run, which has the Work's row.
class WorkAccess {
 public:
  virtual const state::WorkRow& workRow() const = 0;
  virtual const std::string& runId() const = 0;
  // Throw when the database cannot be written.
  virtual void addWorkNote(const std::string& text) = 0;
  virtual void askFinish() = 0;

 protected:
  ~WorkAccess() = default;
};

// What all runs of a daemon share.
struct Shared {
  state::Store& store;
  Owners& owners;
  FairQueue& queue;
};

class RunToolbelt final {
 public:
  // `operations` are the pinned plan's. `work` outlives this.
  RunToolbelt(Shared shared, WorkAccess& work, const std::vector<std::string>& operations);
  ~RunToolbelt() noexcept(false);
  KJ_DISALLOW_COPY(RunToolbelt);

  // For the run's shim. It may outlive this; then its calls are refused.
  proto::Toolbelt::Client capability();
  // Calls that are under way end now, and later ones are refused (`run_ended`). Owners are told.
  void revoke();

  struct State;

 private:
  std::shared_ptr<State> state;
};

}  // namespace oc::toolbelt
