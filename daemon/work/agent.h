// A live agent as the daemon has it: its shim, and the parent of its process tree.
#pragma once

#include <kj/async-io.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/refusal.h"
#include "base/watch.h"
#include "daemon/state/store.h"
#include "daemon/supervisor/supervisor.h"
#include "daemon/toolbelt/operations.h"
#include "docker.capnp.h"
#include "run.capnp.h"

namespace oc::work {

struct AgentSpec {
  std::string run;               // id, for labels
  std::string provider;          // the parent: "srt" or "host"
  std::vector<std::string> job;  // the parent's job words
  std::vector<std::string> hidden, kept;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::map<std::string, SecretBytes>
      secrets;  // by variable: the environment's as well, wiped once they are with the agent
  std::string directory;
  std::string socket, log, networkLog;  // in the run's private directory
  std::string executor = "shell", executorConfig = "{}";
  std::string brief;  // what the agent is told first; see RunSetup.stdin
  // The run's toolbelt; without operations there is none.
  std::vector<toolbelt::Operation> operations;
  std::string toolbeltSocket;  // made at the start, for the agent alone to connect to
  SecretBytes toolbeltToken;   // 32 bytes
  kj::Maybe<proto::Toolbelt::Client> toolbelt;
  uint64_t logLimit = 0, timeoutSeconds = 0, stallSeconds = 0, graceSeconds = 10;
  uint64_t orphanSeconds = 0;  // without a daemon, before it is stopped; 0: as the shim has it. Containers alone
};

struct AgentEnd {
  ProcessEnd process;
  proto::StopReason stopped = proto::StopReason::NONE;
  std::string detail;
  std::string reason;  // what the executor makes of it: "done", a word of docs/reasons.md, or nothing
};

// What became of a message to a live agent.
struct Injected {
  bool delivered = false;
  std::string why;
};

// Who wants to know what the shim tells. The promise resolves when it is in the database: that is the acknowledgement.
// Each may be called for an event that is known already (seq not above the last one): then nothing changes.
class AgentListener {
 public:
  virtual kj::Promise<void> onNote(uint64_t seq, const std::string& text) = 0;
  virtual kj::Promise<void> onSession(uint64_t seq, const std::string& session) = 0;
  virtual kj::Promise<void> onUsage(uint64_t seq, const state::Usage& usage) = 0;
  virtual kj::Promise<void> onNetwork(uint64_t seq, const state::NetworkTotals& totals) = 0;
  virtual kj::Promise<void> onDenied(uint64_t seq, const state::Denial& denial) = 0;
  virtual kj::Promise<void> onEnded(uint64_t seq, const AgentEnd& end) = 0;
  // The shim is gone without having said how the run ended.
  virtual void onLost(const std::string& why) = 0;

 protected:
  ~AgentListener() = default;
};

struct RunEngine;  // engine.h
struct ContainerSpec;

class Agent {
 public:
  // Starts parent and shim, tells `onPids` who they are before the agent starts, begins, launches. A refusal or a
  // broken promise: nothing is left running. `listener` must outlive the agent.
  static kj::Promise<OrRefusal<kj::Own<Agent>>> start(supervisor::Supervisor& supervisor, AgentSpec spec,
                                                      const SecretBytes& key, AgentListener& listener,
                                                      kj::Function<void(pid_t shim, pid_t parent)> onPids);

  // The same in a container, by the run's own instance of the Engine's client.
  static kj::Promise<OrRefusal<kj::Own<Agent>>> startContainer(supervisor::Supervisor& supervisor,
                                                               kj::Own<RunEngine> engine, ContainerSpec container,
                                                               AgentSpec spec, const SecretBytes& key,
                                                               AgentListener& listener,
                                                               kj::Function<void(pid_t shim, pid_t parent)> onPids);

  // Takes a run up that an earlier daemon started. Nothing when there is no shim that proves the key, and `why` says
  // what was found instead.
  static kj::Promise<kj::Maybe<kj::Own<Agent>>> adopt(kj::AsyncIoContext& io, const std::string& socket,
                                                      const SecretBytes& key, uint64_t lastSeq, AgentListener& listener,
                                                      std::string& why,
                                                      kj::Maybe<proto::Toolbelt::Client> toolbelt = nullptr);

  explicit Agent(AgentListener& listener);
  ~Agent() noexcept(false);

  // A message for the agent. Resolves when it has acknowledged it, or will not; a shim that goes away is a no.
  kj::Promise<Injected> inject(const std::string& id, const std::string& text);
  // Asks for the end; it comes as an event.
  void stop(proto::StopReason why);
  // The agent's calls fail from now on, and its connections to the toolbelt are closed.
  void revokeToolbelt();
  // Of a container with a terminal.
  void resize(uint16_t columns, uint16_t rows);
  // The run's own instance of the Engine's client, while it is there.
  kj::Maybe<proto::Docker::Client> docker();
  // The end is in the database: the shim may go, and the tree's parent with it. Resolves when they are gone.
  kj::Promise<void> finish(kj::Timer& timer);
  // For a run that must not have an agent: kills both.
  void kill();

 private:
  struct Starting;
  void watchShim(kj::Promise<void> gone);
  kj::Promise<void> partsGone();

  AgentListener& listener;
  bool finished = false;
  kj::Own<supervisor::Instance> parent, shim;  // of a run that this daemon started
  kj::Own<Connection> adopted;                 // of one that it took up
  kj::Maybe<proto::RunSession::Client> session;
  kj::Promise<void> watching = nullptr;
};

}  // namespace oc::work
