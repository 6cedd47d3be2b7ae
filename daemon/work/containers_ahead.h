// Containers that were started ahead of their runs. What a run's container is made from is known before somebody asks
// for the run, but for the agent itself: so the Engine's work, which is most of what a run waits for, is done in a
// quiet moment. Its entry point starts nothing until the gateway has its policy, which comes with the run.
//
// Such a container belongs to a Work and a run that are not there yet: their ids and folders are. The next Work of its
// binding gets them.
#pragma once

#include <kj/async-unix.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "container_plan.h"
#include "containers.h"
#include "daemon/toolbelt/operations.h"

namespace oc::work {

struct ContainerAhead {
  std::string binding;        // SCOPE/BINDING
  std::string work, run;      // the ids
  kj::Own<RunEngine> engine;  // its instance has started the container; the streams are nobody's yet
  std::string sha256;         // of what it was made from: ContainerSpec::planSha256
};

// That neither of its containers has said anything, or ended, so far.
bool stillWaits(const RunEngine& engine);

class ContainersAhead final : private kj::TaskSet::ErrorHandler {
 public:
  struct Dependencies {
    supervisor::Supervisor& supervisor;
    const Places& places;
    const Environment& own;
    std::function<const config::Config&()> config;
    Containers& containers;
    const toolbelt::Catalogue& catalogue;
    // What could not be removed from an Engine.
    std::function<void(const std::string& socket, const std::string& name, const std::string& what)> onLeftover;
  };
  explicit ContainersAhead(Dependencies dependencies);
  ~ContainersAhead() noexcept(false);

  // The config that is in force has changed, or is the first: what waits goes, and so many bindings may have one.
  void configure(size_t number);

  struct Ids {
    std::string work, run;
  };
  // The ids for the next Work of this binding and its first run, which then has the container that waits; nothing when
  // none does. The folders are the Work's from here on.
  kj::Maybe<Ids> reserve(const std::string& binding);
  // The run begins: its container, or nothing.
  kj::Maybe<kj::Own<ContainerAhead>> claim(const std::string& run);
  // Of one that was claimed and is not what is needed: the container and its gateway go. Never breaks.
  kj::Promise<void> removeContainer(kj::Own<RunEngine> engine, std::string run);
  // The run has ended: a container that it has not claimed goes.
  void forget(const std::string& run) { release(run, false); }
  // The Work that it was reserved for will never be there: the folders go, too.
  void unreserve(const std::string& run) { release(run, true); }

  // A run of this binding has begun: in a quiet moment one is made for the next. When as many bindings have one as may,
  // the one goes that has waited longest. One that cannot be made is tried again after the next run.
  void replenish(const std::string& binding);

  // None is made any more, and all go. Resolves when they are gone, or could not be removed.
  kj::Promise<void> close();

  size_t waiting() const { return pool.size(); }

  // Folders that a daemon which was killed had laid out for no Work. `isWork` says whether there is one of that id.
  // Before anything is made.
  static void removeLeftovers(const Places& places, const std::function<bool(const std::string& work)>& isWork);

 private:
  struct Waiting;
  kj::Promise<void> make(std::string binding);
  kj::Promise<Refusal> start(ContainerAhead& ahead, const config::Config& config);
  OrRefusal<ContainerPlan> planFor(const ContainerAhead& ahead, const config::Config& config) const;
  void layOut(const ContainerAhead& ahead, const config::Binding& binding);
  void keep(kj::Own<ContainerAhead> ahead);
  void drop(size_t index);
  void release(const std::string& run, bool folders);
  kj::Promise<void> remove(kj::Own<ContainerAhead> ahead, bool folders);
  void taskFailed(kj::Exception&& exception) override;

  Dependencies deps;
  size_t number = 0;
  uint64_t generation = 0;  // of the config
  bool closed = false, busy = false;
  kj::PromiseFulfillerPair<void> ending = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> closing;
  std::vector<kj::Own<Waiting>> pool;                       // the one that has waited longest first
  std::map<std::string, kj::Own<ContainerAhead>> reserved;  // by run
  kj::ForkedPromise<void> making;
  kj::TaskSet tasks;
};

}  // namespace oc::work
