// A person in a Work's container: from its making to its removal. It has directories like a run's, under an id of its
// own, and is in no table: what a daemon leaves of it, the next one's sweep removes.
#pragma once

#include <kj/refcount.h>

#include "agent.h"
#include "attach_plan.h"
#include "run_life.h"

namespace oc::work {

class Attachment final : public kj::Refcounted, private AgentListener {
 public:
  Attachment(RunDependencies& dependencies, state::WorkRow work, PinnedContainer pinned,
             control::TerminalFacts terminal);
  ~Attachment() noexcept(false);

  // All of it. Resolves when nothing is left; never breaks.
  kj::Promise<void> live();

  // Resolves when the container runs and its terminal waits to be taken, or with the refusal.
  kj::Promise<Refusal> ready() { return readyBranches.addBranch(); }
  // Resolves when it has ended and is removed.
  kj::Promise<ProcessEnd> whenGone() { return goneBranches.addBranch(); }
  // It is to end, whatever it does just now.
  void end();

  // The socket that gives the terminal away, once; see AttachSession in proto/control.capnp.
  std::string terminalSocket() const;
  void resize(control::TerminalSize size);

  // What an earlier daemon's attachments left in the directories. Before any begins.
  static void removeLeftovers(const Places& places);

 private:
  using Step = kj::Promise<Refusal>;
  Step prepare();
  void layOut();
  Step openEngine();
  Step checkWorkspace();
  Step fetchSecrets();
  Step start();
  AgentSpec agentSpec() const;
  kj::Promise<void> giveTerminal();
  void give(kj::AsyncIoStream& taker);
  kj::Promise<void> remove();

  kj::Promise<void> onNote(uint64_t seq, const std::string& text) override;
  kj::Promise<void> onSession(uint64_t, const std::string&) override { return kj::READY_NOW; }
  kj::Promise<void> onUsage(uint64_t, const state::Usage&) override { return kj::READY_NOW; }
  kj::Promise<void> onNetwork(uint64_t, const state::NetworkTotals&) override { return kj::READY_NOW; }
  kj::Promise<void> onDenied(uint64_t, const state::Denial&) override { return kj::READY_NOW; }
  kj::Promise<void> onEnded(uint64_t seq, const AgentEnd& end) override;
  void onLost(const std::string& why) override;

  RunDependencies& deps;
  std::string id;
  state::WorkRow work;
  PinnedContainer pinned;
  control::TerminalFacts facts;
  config::Config config;  // today's, for as long as it lives
  const config::Binding* binding = nullptr;
  RunSecrets secrets;
  kj::Own<RunEngine> engine;  // until the container is made
  kj::AutoCloseFd terminal;   // the container's stream, until it is given away
  kj::AutoCloseFd silence;    // what the shim has in its place: an end of a pair on which nothing is said
  kj::Own<Agent> agent;
  ProcessEnd outcome;
  bool mayHaveContainers = false;
  kj::Promise<void> giving = nullptr;
  kj::PromiseFulfillerPair<void> over = kj::newPromiseAndFulfiller<void>();
  kj::PromiseFulfillerPair<Refusal> readyPair = kj::newPromiseAndFulfiller<Refusal>();
  kj::ForkedPromise<Refusal> readyBranches;
  kj::PromiseFulfillerPair<ProcessEnd> gonePair = kj::newPromiseAndFulfiller<ProcessEnd>();
  kj::ForkedPromise<ProcessEnd> goneBranches;
};

}  // namespace oc::work
