// The daemon's side of an executor: which command an agent is, what it gets, and what it is told first. What its
// streams mean is the shim's side, providers/run/executors. Another kind of agent is one file more, here as there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"
#include "daemon/state/store.h"
#include "daemon/work/environment.h"
#include "daemon/work/messages.h"

namespace oc::work {

struct AgentRequest {
  const config::Config& config;
  const config::Binding& binding;
  const state::WorkRow& work;
  const state::RunRow& run;
  const Places& places;
  const Environment& own;
  std::string body;            // the request's
  RunMessages messages;        // that this run begins with
  std::string author;          // of the request; empty: the operator
  std::string number;          // what the request is called where it comes from; empty: the Work's id
  std::string toolbeltClient;  // open-conduit-toolbelt as the run sees it; empty: the run has no toolbelt
  uint32_t baseMovedBy = 0;    // commits that the branch which the Work began from has got since, and the Work has not
};

struct AgentSetup {
  std::vector<std::string> command;
  Environment environment;                   // what the binding says goes before
  std::map<std::string, std::string> files;  // by path, in the run's own directory: written before the start, mode 0600
  std::string executorConfig = "{}";         // for the shim's side
  std::string brief;                         // what the agent is told first
  bool resumes = false;                      // goes on in the Work's session
};

// Looks at the operator's files and environment, and changes nothing. Refuses what the agent needs and cannot have:
// `executor_unavailable`, `sandbox_denied`, `playbook_unknown`, `playbook_invalid`.
OrRefusal<AgentSetup> setUpAgent(const AgentRequest& request);

// What an srt policy has to grant to the agent, looked at when the settings are made: `allowed` are its writable paths,
// resolved.
OrRefusal<bool> checkAgentsWrites(const config::Binding& binding, const std::vector<std::string>& allowed);

// Whether a run of this executor can take a message while it lives.
bool takesMessages(const std::string& executor);

// What a person gets who attaches to Work in a container: its agent, interactive, in the Work's session; or a shell.
// `run` names the attachment's own directory.
AgentSetup setUpAttached(const std::string& executor, const state::WorkRow& work, const std::string& run,
                         const Places& places);
// The same on the host, for Work that ran without a sandbox. Refuses as setUpAgent.
OrRefusal<std::vector<std::string>> attachedCommandOnHost(const config::Config& config, const config::Binding& binding,
                                                          const state::WorkRow& work, const Places& places,
                                                          const Environment& own);

// ---- each executor's own, called by the above

OrRefusal<AgentSetup> setUpShell(const AgentRequest& request);
OrRefusal<AgentSetup> setUpClaudeCode(const AgentRequest& request);
Environment claudesEnvironment(const std::string& temporary);
// The words behind the program, for a person.
std::vector<std::string> claudesAttachedWords(const std::string& session, bool sandboxed);
OrRefusal<bool> checkClaudesWrites(const config::Binding& binding, const std::vector<std::string>& allowed);

}  // namespace oc::work
