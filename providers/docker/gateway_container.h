// A gateway: its network, its volume and its container, of a run or ahead of one.
#pragma once

#include <kj/async-io.h>

#include <string>

#include "container_calls.h"
#include "spec.h"

namespace oc::docker {

class GatewayContainer {
 public:
  // Both connections may be the same one. `GatewaySpec::planSha256` is of the run.
  GatewayContainer(Engine& first, Engine& second, GatewaySpec spec, std::string context);

  // The volume, and the owner's egress network where it is missing.
  Step makePlaces();
  // Its container, over the second connection. It is attached to and started afterwards.
  Step make();
  Step attachTo(kj::AsyncIoStream& stream);
  Step start();
  // In place of all of these, for one that was made ahead: refuses one that is not there, does not run, or is otherwise
  // than asked.
  Step findPrepared();

  const std::string& id() const { return container; }

 private:
  Step makeVolume();
  Step requireEgress(int attempt);
  Step makeEgress();
  Making making() const;
  std::optional<Refusal> refusePrepared(const Json& inspected);

  Engine& first;
  Engine& second;
  GatewaySpec spec;
  std::string context, container;
};

}  // namespace oc::docker
