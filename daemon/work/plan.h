// What a run gets, decided before it starts: canonical JSON, pinned in the database by its SHA-256.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/json.h"
#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"
#include "daemon/state/store.h"
#include "engine.h"
#include "daemon/toolbelt/operations.h"
#include "environment.h"
#include "executors/executor.h"

namespace oc::work {

struct Plan {
  Json document;  // without any secret's value
  std::string json, sha256;
  // How it is carried out:
  std::string provider;          // the agent's parent: "srt", "host"
  std::vector<std::string> job;  // its words
  std::vector<std::string> hidden, kept;
  std::vector<std::string> command;
  Environment environment;  // without the secrets
  std::string directory;
  std::string settingsFile, settings;  // srt: to be written before the start; else empty
  std::vector<std::string> notes;      // what the operator should know of it
  std::string startedMarker;           // written by the agent's side when the sandbox let it start; else empty
  ContainerSpec container;             // for "docker": the agent comes by the files of container_plan.h
};

// The run's toolbelt as it is planned; without operations there is none.
struct PlannedToolbelt {
  std::vector<toolbelt::Operation> operations;
  std::string socket;
  std::string program;  // open-conduit-toolbelt, or empty where it was not installed
  std::string folder;   // that has a link to it, and comes last in the agent's PATH
};

struct PlanRequest {
  const config::Config& config;
  const config::Binding& binding;
  const state::WorkRow& work;
  const state::RunRow& run;
  const Places& places;
  const AgentSetup& agent;
  std::vector<std::string> secretVariables;  // that the run's secrets go into
  const PlannedToolbelt& toolbelt;
  const RunEngine* engine = nullptr;      // what the Engine said, for a container
  std::string owner, programs;            // likewise: our label there, and where Open Conduit's programs are
  std::vector<std::string> cgroups = {};  // of a process sandbox: control groups that the tree is to go into
};

// Looks at the operator's files and environment; makes nothing.
OrRefusal<Plan> makePlan(const PlanRequest& request, const Environment& own);

}  // namespace oc::work
