// What a run's container is made from: everything but what its agent is and gets. It can be decided, and the container
// started, before there is a run for it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/json.h"
#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"
#include "engine.h"
#include "environment.h"

namespace oc::work {

struct ContainerPlanRequest {
  const config::Config& config;
  const config::Binding& binding;
  std::string work, run;  // their ids; the Work's folders, and the run's, are laid out
  const Places& places;
  bool toolbelt = false;  // the run has one
  const RunEngine& engine;
  std::string owner, programs;  // our label on the Engine, and where Open Conduit's programs are
};

struct ContainerPlan {
  ContainerSpec spec;              // planSha256 is the document's
  Json document;                   // of a run's plan: "sandbox"
  std::vector<std::string> notes;  // what the operator should know of it
};

// Looks at the operator's files; makes nothing. Refuses as sandbox::makeContainerSettings does, and a limit that the
// Engine cannot keep (`sandbox_unavailable`). Two plans with the same hash have the same container.
OrRefusal<ContainerPlan> planContainer(const ContainerPlanRequest& request, const Environment& own);

// What a run's container is labelled with: the hash of its plan's "sandbox", but for the network. That is its gateway's
// policy, which comes with the run; the machine's own addresses, which it refuses, change with each container.
std::string containerHash(Json sandbox);

// What the agent is and gets, as files in the run's folder of secrets: its command and environment (as
// gateway/client/start_file.h reads them) and the secrets. The entry point reads and deletes them when its gateway has
// its policy. Refuses (`request_invalid`) a NUL in a text, naming it.
std::optional<Refusal> writeAgentsFiles(const Places& places, const std::string& run, const Environment& environment,
                                        const std::vector<std::string>& command,
                                        const std::map<std::string, SecretBytes>& secrets);

// The entry point with its options. With `agentLater` the agent comes by the files above; without, its words are to
// follow.
std::vector<std::string> containerEntry(const sandbox::ContainerSettings& settings, bool agentLater, bool secrets,
                                        bool toolbelt);
// Whom a container of ours runs as.
std::string containerUser(const EngineFacts& engine);

}  // namespace oc::work
