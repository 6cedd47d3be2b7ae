// One run's containers: made, attached to, started, ended.
#pragma once

#include <kj/timer.h>

#include <string>

#include "base/watch.h"
#include "cleaner.h"
#include "engine.h"
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

  // Makes and attaches all of it; nothing runs yet. What there is of an earlier attempt is removed before. On a refusal
  // nothing of it is left.
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
  const std::string& gatewayId() const { return gateway; }

 private:
  Step requireLimits();
  Step removeEarlier();
  Step makeVolume();
  Step requireEgress(int attempt);
  Step makeEgress();
  Step makeContainer(Engine& engine, const Json& body, const std::string& role, std::string& id);
  Step beginWaiting();
  Step start(Engine& engine, const std::string& id, const std::string& doing);
  Step undo(Refusal refusal);

  Connections connections;
  RunSpec spec;
  std::string context;
  Cleaner cleaner;
  std::string agent, gateway;
  kj::Maybe<kj::Promise<Answer>> waiting;
};

}  // namespace oc::docker
