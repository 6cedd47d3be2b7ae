// Which run lives when, and everything that the control socket asks for.
#pragma once

#include <kj/async-io.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/config/load.h"
#include "attachment.h"
#include "daemon/control/backend.h"
#include "doctor.h"
#include "log_file.h"
#include "run_life.h"

namespace oc::work {

struct SchedulerOptions {
  std::string configPath;
  Places places;
  Environment own;
  std::string programs;                     // where Open Conduit's programs are
  std::function<void(size_t live)> onRuns;  // whenever that number changes
};

class Scheduler final : public control::Backend, private kj::TaskSet::ErrorHandler {
 public:
  Scheduler(kj::AsyncIoContext& io, supervisor::Supervisor& supervisor, std::unique_ptr<state::Store> store,
            config::Config config, SchedulerOptions options);
  ~Scheduler() noexcept(false);

  // Goes through what an earlier daemon left: runs are taken up or ended, Work that was being ended is ended.
  void recover();

  // Before the daemon ends: what was made ahead of runs goes. Runs go on.
  kj::Promise<void> close() {
    return containersAhead.close().then([this]() { return gateways.close(); });
  }

  // What is done with a message for a Work whose run is live: it goes into that run, waits for its end, or nothing.
  // Without a live run a new one begins with it, whatever the policy.
  enum class ActivePolicy { Inject, Queue, Ignore };
  // Resolves when the live agent has acknowledged it, or a run is queued that begins with it. A message that its Work
  // has had already, by its id, is not taken again: the answer names the run that has it. Refuses (`not_found`,
  // `work_ended`, `work_busy`, `draining`, `request_invalid`). With Ignore and a live run, `run` is that one and
  // `delivered` is false.
  kj::Promise<OrRefusal<control::Said>> deliver(std::string work, Message message, ActivePolicy policy);
  // Where other parts of the daemon add the operations that they carry out. Before `recover`.
  toolbelt::Catalogue& catalogue() { return theCatalogue; }
  toolbelt::Owners& owners() { return theOwners; }
  Hooks& hooks() { return theHooks; }

  // The rows of new Work and its first run, with the file of its body; not in the database. `number` is what the
  // request is called where it comes from, empty for the Work's id. Refuses (`request_invalid`, `draining`).
  struct Described {
    state::WorkRow work;
    state::RunRow run;
  };
  OrRefusal<Described> describeWork(const control::WorkRequest& request, const std::string& number);
  // They are in the database: the run may begin. Or they never will be.
  void workAdded();
  void workDropped(const Described& described);
  // Whoever wanted it wants no more of it: what waits is stopped, and it is finished when its live run has ended. Asked
  // for twice is as once.
  void finishWhenQuiet(const std::string& work);

  void fillStatus(proto::Status::Builder status) override;
  OrRefusal<control::NewWorkIds> newWork(control::WorkRequest request) override;
  state::Store& store() override { return *theStore; }
  const Places& places() override { return options.places; }
  kj::Promise<OrRefusal<bool>> endWork(std::string id, bool cancel, bool discard) override;
  kj::Promise<OrRefusal<control::Said>> sayWork(std::string id, std::string text) override;
  OrRefusal<control::ExecPlace> execPlace(std::string id) override;
  kj::Promise<OrRefusal<control::AttachPlace>> attachWork(std::string id, control::TerminalFacts terminal) override;
  kj::Promise<OrRefusal<bool>> waitRun(std::string id) override;
  kj::Promise<OrRefusal<control::LogPiece>> readLog(std::string run, uint64_t offset, bool follow) override;
  kj::Promise<OrRefusal<control::LogPiece>> readNetwork(std::string run, uint64_t offset, bool follow) override;
  OrRefusal<control::PinnedPlan> plan(std::string run) override;
  OrRefusal<bool> stopRun(std::string id) override;
  kj::Promise<void> drain(bool stop) override;
  std::string reload() override;
  kj::Promise<std::vector<control::DoctorLine>> doctor() override;

 private:
  class Held;
  std::optional<Refusal> refuseAttachment(const std::string& id);
  std::optional<PinnedContainer> lastPlan(const std::string& work);
  OrRefusal<control::AttachPlace> attachOnHost(const std::string& id);
  void detached(const std::string& id);
  kj::Promise<void> sweepEngines();
  kj::Promise<void> removeLeftover(std::string socket, std::string run, kj::Duration wait);
  void noteLeftover(const std::string& socket, const std::string& run, const std::string& what);
  void startWhatMay();
  bool mayStart(const state::RunRow& run);
  void begin(const state::RunRow& run);
  void applySettings();
  RunLife* liveRunOf(const std::string& work);
  kj::Promise<OrRefusal<control::LogPiece>> readFileOf(std::string run, std::string path, uint64_t offset, bool follow);
  kj::Promise<OrRefusal<control::Said>> hand(std::string id, Message message, ActivePolicy policy);
  OrRefusal<control::Said> queueTurn(const state::WorkRow& work, const Message& message);
  std::optional<Refusal> refuseTurn(const std::string& id, const std::optional<state::WorkRow>& work);
  void addTurn(const state::RunRow& run, const RunMessages& messages);
  void retryIfWorth(state::RunRow& ended);
  void wakeFor(const state::RunRow& run);
  kj::Promise<OrRefusal<bool>> finishEnding(std::string id, bool discard);
  kj::Promise<OrRefusal<bool>> removeWork(state::WorkRow work, bool discard);
  bool removalHasBegun(const std::string& id) const;
  kj::Promise<OrRefusal<bool>> saveLast(state::WorkRow work, bool discard);
  kj::Promise<OrRefusal<bool>> removeWorkspace(const state::WorkRow& work);
  void noteEnd(state::WorkRow work);
  kj::Promise<void> removeFilesOf(const state::WorkRow& work);
  kj::Promise<void> whenEnded(const std::string& run);
  void noteEnded(const std::string& run);
  void finishIfAsked(const std::string& work);
  void taskFailed(kj::Exception&& exception) override;

  kj::AsyncIoContext& io;
  supervisor::Supervisor& supervisor;
  std::unique_ptr<state::Store> theStore;
  config::Config config;
  SchedulerOptions options;
  Workspaces workspaces;
  Containers containers;
  PreparedGateways gateways;
  ContainersAhead containersAhead;
  toolbelt::Catalogue theCatalogue;
  toolbelt::Owners theOwners;
  toolbelt::FairQueue callQueue;
  Hooks theHooks;
  RunDependencies dependencies;
  Doctor theDoctor;
  LogReader logs;
  int64_t startedAt, configLoadedAt;
  std::string configProblem;
  std::map<std::string, std::string> leftovers;  // what could not be removed from an Engine, by run
  bool draining = false;
  std::map<std::string, kj::Own<RunLife>> live;         // by the run's id
  std::map<std::string, kj::Own<Attachment>> attached;  // by the Work's id; null: on the host
  std::set<std::string> ending;                         // Work that is being ended right now
  std::multimap<std::string, kj::Own<kj::PromiseFulfiller<void>>> waitingForRun;
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> waitingForDrain;
  kj::TaskSet tasks;
};

}  // namespace oc::work
