// What a person's attachment to Work in a container gets. The plan that the Work's last run was pinned to decides: its
// image, mounts, network and limits; not what the binding says today.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "daemon/control/backend.h"
#include "engine.h"
#include "executors/executor.h"

namespace oc::work {

// A run's plan, as it is in the database.
struct PinnedContainer {
  std::string run, sha256;
  Json document;

  std::string engineSocket() const { return document.at("sandbox").at("engine").at("socket"); }
  std::string engineContext() const { return document.at("sandbox").at("engine").at("context"); }
  std::string image() const { return document.at("sandbox").at("image").at("reference"); }
  std::string imageId() const { return document.at("sandbox").at("image").at("id"); }
  std::string executor() const { return document.at("executor"); }
  // Variables that secrets go into, without the token of a toolbelt, which an attachment does not have.
  std::vector<std::string> secretVariables() const;
};

struct AttachPlanRequest {
  const PinnedContainer& pinned;
  const config::Binding& binding;  // today's, for the values of the variables that the plan names
  const state::WorkRow& work;
  std::string id;  // the attachment's own, which has directories like a run's
  const Places& places;
  std::string programs, owner;
  const RunEngine& engine;
  control::TerminalFacts terminal;
  std::vector<std::string> secretVariables;  // that there are values for
};

struct AttachPlan {
  ContainerSpec container;
  std::map<std::string, std::string> files;  // to be written before the start
};

// Looks at the operator's files and makes nothing. Refuses (`sandbox_denied`) a mount that is not the same place any
// more.
OrRefusal<AttachPlan> makeAttachPlan(const AttachPlanRequest& request, const Environment& own);

}  // namespace oc::work
