// What open-conduit-srt and open-conduit-host have in common: the parent of one agent's process tree, as
// proto/sandbox.capnp has it. They differ in how the agent is started and how nothing of it is left.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/refusal.h"
#include "base/watch.h"
#include "denials.h"
#include "kit.h"
#include "sandbox.capnp.h"

namespace oc::kit {

// The descriptors that sandbox.capnp names.
constexpr int shimDescriptor = 4;
constexpr int agentInput = 5, agentOutput = 6, agentErrors = 7;

struct AgentCommand {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;
};

struct Check {
  std::string name;
  bool ok = false;
  std::string what, fix;
  bool wanted = false;
};

class AgentTree {
 public:
  virtual ~AgentTree() noexcept(false) {}

  // Starts the agent on descriptors 5, 6 and 7. Nothing: it was started.
  virtual std::optional<Refusal> start(const AgentCommand& command) = 0;
  // The end of what `start` started. Its descendants may live on.
  virtual kj::Promise<ProcessEnd> ended() = 0;
  // Asks every process of the agent to end (SIGTERM).
  virtual void terminate() = 0;
  // Ends them. Resolves when nothing is left.
  virtual kj::Promise<void> kill() = 0;
  // What it refused and can tell, complete when `ended` has resolved. Null: it can tell nothing.
  virtual DenialList* denials() { return nullptr; }
  // Called when the tree is gone, once.
  virtual void cleanUp() {}

  virtual kj::Promise<std::vector<Check>> check() = 0;
};

// Call it in Provider::parse: later the numbers may be taken by descriptors of our own.
bool hasAgentDescriptors();

// Serves the tree: Sandbox on the RPC connection, Process on descriptor 4 when `withShim`. Ends the process when it is
// of no more use: the shim is gone (then the tree first), or the daemon before it launched anything.
capnp::Capability::Client serveAgentTree(Context& context, kj::Own<AgentTree> tree, bool withShim);

// `open-conduit-X run … -- COMMAND`: starts an instance for `job` and is its shim: our standard streams are the
// agent's, SIGINT and SIGTERM stop it (the second time at once). Returns the agent's exit code, 128 and the signal's
// number, or 1 when it was refused.
int runAgentByHand(const std::vector<std::string>& job, const std::vector<std::string>& command);
// While it is not dropped: SIGINT or SIGTERM of ours sends `number` to the agent, and the second one SIGKILL. Capture
// both signals before any event loop runs.
kj::Promise<void> stopOnSignals(kj::UnixEventPort& port, proto::Process::Client process, int number);
// `open-conduit-X check`: prints a line per check; 0 when all that block are ok.
int checkByHand(const std::vector<std::string>& job);

// The status of a program that was ended so, as shells have it.
int exitCode(const ProcessEnd& end);

// What a person's environment gives an agent that is run by hand.
std::vector<std::pair<std::string, std::string>> environmentByHand();

}  // namespace oc::kit
