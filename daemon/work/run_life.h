// One run from queued to ended. Each step is in the database before its effects begin, so that a daemon that finds the
// run at that step knows what may be there. The steps are in files of their own: run_prepare.cc, run_agent.cc,
// run_end.cc.
#pragma once

#include <kj/async.h>

#include <functional>
#include <string>

#include "agent.h"
#include "base/places.h"
#include "daemon/config/model.h"
#include "daemon/state/store.h"
#include "containers.h"
#include "containers_ahead.h"
#include "hooks.h"
#include "daemon/toolbelt/run_toolbelt.h"
#include "plan.h"
#include "prepared_gateways.h"
#include "secrets.h"
#include "workspace.h"

namespace oc::work {

// What all runs of a daemon share.
struct RunDependencies {
  supervisor::Supervisor& supervisor;
  state::Store& store;
  Workspaces& workspaces;
  const Places& places;
  const Environment& own;
  std::function<const config::Config&()> config;  // the one in force now
  Containers& containers;
  PreparedGateways& gateways;
  ContainersAhead& containersAhead;
  // What could not be removed from an Engine, to be tried again later.
  std::function<void(const std::string& socket, const std::string& run, const std::string& what)> onLeftover;
  std::function<void(state::RunRow&)> ending;  // before the run's end is written; may be called twice for one run
  const toolbelt::Catalogue& catalogue;
  toolbelt::Owners& owners;
  toolbelt::FairQueue& callQueue;
  const Hooks& hooks;
};

class RunLife final : private AgentListener, private toolbelt::WorkAccess {
 public:
  RunLife(RunDependencies& dependencies, state::RunRow run);
  ~RunLife() noexcept(false);

  // Goes through the steps that are left. Resolves when the run has ended; never breaks: what goes wrong is an outcome.
  kj::Promise<void> live();

  // A message for its agent. Waits for an agent that is being started. Not delivered: the run's executor takes none, it
  // is ending, or its agent did not acknowledge it.
  kj::Promise<Injected> inject(std::string id, std::string text);

  // Its Work is to be finished when this run has ended, unless another waits.
  void finishWorkAfterwards() {
    finishAfterwards = true;
    askFinish();
  }

  // The run is to end; at once when it has not begun.
  void stop(proto::StopReason why);

  const state::RunRow& row() const { return run; }
  // Why what is true of it is not in the database yet; empty when it is.
  const std::string& unwritten() const { return persistTrouble; }
  kj::Promise<void> whenEnded() { return ended.addBranch(); }

 private:
  // Each step sees to it that the next one's state is written before it begins.
  kj::Promise<void> prepare();
  kj::Promise<void> prepareFurther();
  kj::Promise<void> makeWorkspace();
  kj::Promise<void> openEngine();
  kj::Promise<void> freshenEngine();
  kj::Promise<void> makeWorksHome();
  kj::Promise<void> checkWorkspace();
  kj::Promise<void> fetchSecrets();
  kj::Promise<void> askForGit();
  void takeAhead();
  kj::Promise<void> dropAhead();
  kj::Promise<void> planOrStartAnew();
  kj::Promise<void> startAnew();
  void decide();
  void takeGateway();
  void giveGatewayBack();
  void setUpTheAgent();
  void planToolbelt();
  void layOut();
  kj::Promise<void> startAgent();
  kj::Promise<void> takeUp();
  kj::Promise<void> launchAgent(SecretBytes key);
  kj::Promise<OrRefusal<kj::Own<Agent>>> startParts(const SecretBytes& key);
  void prepareNext();
  void checkContainer();
  void pinnedContainerHolds(const Json& plan, const Engines::Found& found);
  kj::Promise<void> save();
  kj::Promise<void> saveCommits();
  kj::Promise<void> lookThroughWorkspace();
  void noteFound();
  void endLimits();
  void hurrySave();
  void noteUnsaved(const Refusal& refusal);
  void noteUncommitted(const Workspaces::Saved& saved);
  kj::Promise<void> clean();
  kj::Promise<void> findShim();
  void beginRemoving();
  kj::Promise<void> removeContainers();
  kj::Promise<void> lookWhetherBaseMoved();
  std::vector<std::string> engineSockets();
  kj::Promise<void> removeBy(kj::Maybe<proto::Docker::Client> docker);
  kj::Promise<void> removeLeftovers();
  kj::Promise<void> finishRow();

  std::optional<Json> pinnedPlan();
  void stopForPolicy(const std::string& trouble);
  bool concludedByPolicy();
  bool pinnedPolicyHolds(std::string& why);
  std::vector<std::string> pinnedOperations();
  void refuse(const Refusal& refusal);
  void conclude(state::Outcome outcome, const std::string& reason, const std::string& message);
  // Written when it resolves, however long the disk stays full.
  kj::Promise<void> moveTo(state::RunState state);
  kj::Promise<void> persist();
  bool tryPersist();
  void updateWork();
  std::string persistTrouble;  // see unwritten()
  void addNote(const std::string& text);
  bool over() const { return run.outcome != state::Outcome::None; }
  AgentSpec agentSpec();

  void offerToolbelt(const std::vector<std::string>& operations);
  void endToolbelt();
  const state::WorkRow& workRow() const override { return work; }
  const std::string& runId() const override { return run.id; }
  void addWorkNote(const std::string& text) override;
  void askFinish() override;

  kj::Promise<void> onNote(uint64_t seq, const std::string& text) override;
  kj::Promise<void> onSession(uint64_t seq, const std::string& session) override;
  kj::Promise<void> onUsage(uint64_t seq, const state::Usage& usage) override;
  kj::Promise<void> onNetwork(uint64_t seq, const state::NetworkTotals& totals) override;
  kj::Promise<void> onDenied(uint64_t seq, const state::Denial& denial) override;
  kj::Promise<void> onEnded(uint64_t seq, const AgentEnd& end) override;
  template <typename Change>
  kj::Promise<void> noteOnce(uint64_t seq, Change&& change);
  void judgeEnd(const AgentEnd& end);
  void agentIsThere();
  void insistOnEnd();
  void onLost(const std::string& why) override;

  RunDependencies& deps;
  state::RunRow run;
  state::WorkRow work;
  const config::Binding* binding = nullptr;  // only while preparing: a reload may replace it
  config::Config configCopy;                 // what the binding points into
  AgentSetup agentSetup;
  RunSecrets secrets;  // the values only until the agent has them
  Plan plan;
  kj::Own<RunEngine> engine;  // of a container, until its agent starts
  int64_t engineOpenedAt = 0;
  GatewayKind gatewayKind;
  std::string policyTrouble;    // why the policy that it runs with is not known to be the pinned one; empty: it is
  std::string aheadSha256;      // of the container that was started for it; empty: none, or its agent is there
  bool laidOut = false;         // its folders were, for such a container
  std::string preparedGateway;  // that this run was given; empty: none, or by an earlier daemon
  kj::Maybe<kj::Promise<void>> removing;  // its containers, beside the saving
  bool workspaceIsNew = false;            // this run has made it, and nothing of an agent was in it yet
  kj::Promise<void> checkingContainer = nullptr;
  PlannedToolbelt plannedToolbelt;
  uint32_t baseMovedBy = 0;          // commits of the branch that the Work began from
  std::vector<std::string> cgroups;  // of a process sandbox with limits
  Environment gitEnvironment;        // of the service that the run works for
  SecretBytes toolbeltToken;
  kj::Own<toolbelt::RunToolbelt> toolbelt;  // while the agent lives
  kj::AutoCloseFd log;
  kj::Promise<void> looking = nullptr;  // beside the saving
  std::vector<std::string> found;       // by that
  int savesThatDied = 0;
  kj::Own<kj::PromiseFulfiller<OrRefusal<Workspaces::Saved>>> giveUpSave;
  bool hurrying = false;
  bool finishAfterwards = false;
  kj::Promise<void> hurry = nullptr;
  bool insisting = false;
  kj::Promise<void> insistence = nullptr;
  kj::Own<Agent> agent;
  kj::PromiseFulfillerPair<void> agentEnd = kj::newPromiseAndFulfiller<void>();
  kj::Canceler injections;
  kj::PromiseFulfillerPair<void> agentStart = kj::newPromiseAndFulfiller<void>();  // or it never will be there
  kj::ForkedPromise<void> agentStarted;
  kj::PromiseFulfillerPair<void> endPair = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> ended;
};

}  // namespace oc::work
