// One run, from its containers' making to the agent's end: what outlives the daemon and dies with the shim.
#pragma once

#include <kj/async-io.h>
#include <kj/refcount.h>

#include <optional>

#include "containers.h"
#include "job.h"
#include "providers/kit/kit.h"

namespace oc::docker {

// How an agent ended; `why` when nobody knows.
struct AgentEnd {
  ProcessEnd end;
  std::string why;
};

class RunLife final : public kj::Refcounted, private kj::TaskSet::ErrorHandler {
 public:
  // `connections`: in docker.capnp's order: calls, waiting, the agent's stream, the gateway's, the spare one.
  RunLife(kit::Context& context, Job job, kj::Array<kj::Own<kj::AsyncIoStream>> connections);

  // Once.
  Step create(RunSpec spec);
  Step start();
  // After start.
  Step resize(unsigned columns, unsigned rows);
  const std::string& agentId() const;
  const std::string& gatewayId() const;
  // The one that was made ahead, by its name; empty before create, or without one.
  const std::string& preparedGateway() const { return prepared; }

  Engine& engine() { return calls; }
  Cleaner& cleaner() { return theCleaner; }

  kj::Promise<AgentEnd> wait();
  // SIGTERM or SIGKILL; after SIGKILL it resolves when the container has ended.
  kj::Promise<void> signal(int number);
  void shimGone();

 private:
  kj::Promise<AgentEnd> watchEnd();
  void leave();
  kj::Promise<void> undo();
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer;
  Job job;
  Engine calls, waiting, spare;
  kj::Own<kj::AsyncIoStream> agentStream, gatewayStream;
  Cleaner theCleaner;
  kj::Maybe<kj::Own<Containers>> containers;
  std::string prepared;
  bool creating = false, starting = false, launched = false, stopped = false, leaving = false;
  kj::PromiseFulfillerPair<void> started = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> startedBranches = started.promise.fork();
  kj::ForkedPromise<AgentEnd> ended = nullptr;
  kj::Maybe<Step> gatewayStart;
  kj::TaskSet tasks;
};

}  // namespace oc::docker
