// One run's containers: made, attached to, started, ended.
#pragma once

#include <kj/timer.h>

#include <string>

#include "base/watch.h"
#include "cleaner.h"
#include "engine.h"
#include "gateway_container.h"
#include "spec.h"
#include "step.h"

namespace oc::docker {

class Containers {
 public:
  struct Connections {
    Engine& first;
    Engine& second;   // may be the first
    Engine* waiting;  // for the agent's end alone; none: it is not waited for
    kj::AsyncIoStream& agent;
    kj::AsyncIoStream* gateway;  // none: only for runs without a network
  };

  Containers(kj::Timer& timer, Connections connections, RunSpec spec, std::string context);

  // Makes and attaches all of it; nothing runs yet but a gateway that was made ahead. What there is of an earlier
  // attempt is removed before. On a refusal nothing of it is left, that gateway included.
  Step make();
  Step startGateway();
  Step startAgent();

  // The agent's end, as the Engine tells it: 128 and a signal's number is that signal, since the container's first
  // process ends so. Breaks when the Engine goes away. Only with a waiting connection, once, after make.
  kj::Promise<ProcessEnd> agentEnd();
  // Sends a signal to the agent's container. One that does not run is fine.
  kj::Promise<void> signalAgent(const std::string& name);
  // The agent's terminal has this size from now on. One that does not run is fine.
  Step resize(unsigned columns, unsigned rows);
  // Kills both containers.
  kj::Promise<void> kill();
  kj::Promise<OrRefusal<Removed>> remove();

  const std::string& agentId() const { return agent; }
  const std::string& gatewayId() const { return gateway.id(); }

 private:
  Step requireLimits();
  Step removeEarlier();
  Step makePlaces();
  Step makeContainers();
  Step makeAgent();
  Step attachGateway();
  Step beginWaiting();
  Making makingAgent() const;
  bool makesGateway() const { return spec.network && spec.preparedGateway.empty(); }
  Step undo(Refusal refusal);

  kj::Timer& timer;
  Connections connections;
  RunSpec spec;
  std::string context;
  Cleaner cleaner;
  GatewayContainer gateway;
  std::string agent;
  kj::Maybe<kj::Promise<Answer>> waiting;
};

}  // namespace oc::docker
