// Gateways that were made ahead of their runs: a volume and a container, started, which wait for a policy on a stream
// that the daemon holds and never reads. A run that finds one has its own container alone to make and to start.
#pragma once

#include <kj/async-unix.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine.h"

namespace oc::work {

// What has to be equal for a run to take a gateway.
struct GatewayKind {
  std::string socket, engineId;  // the Engine
  std::string image;             // the gateway image's id
  std::string user;              // whom the run is, and who alone may use the gateway's sockets

  bool operator==(const GatewayKind&) const = default;
};

struct PreparedGateway {
  std::string name;
  kj::AutoCloseFd stream;  // attached to it; nothing was said on it. It ends when this is closed
};

class PreparedGateways final : private kj::TaskSet::ErrorHandler {
 public:
  // `onLeftover` is told of one that could not be removed.
  using OnLeftover = std::function<void(const std::string& socket, const std::string& name, const std::string& what)>;
  PreparedGateways(supervisor::Supervisor& supervisor, Engines& engines, OnLeftover onLeftover);
  ~PreparedGateways() noexcept(false);

  // How many wait for each Engine, from now on; and for which Engines.
  void configure(size_t number, std::vector<std::string> sockets);

  // One of this kind, which is the caller's alone; nothing when none waits. Those of another kind that wait for the
  // same Engine go: its gateway image or its user is another one by now.
  kj::Maybe<PreparedGateway> take(const GatewayKind& kind);
  // One that was taken and has not been used.
  void giveBack(const GatewayKind& kind, PreparedGateway gateway);
  // A run of this kind has begun: in a quiet moment, so many are made that the number waits again. One that cannot be
  // made is tried again after the next run.
  void replenish(const GatewayKind& kind);

  // None is made any more, and all go. Resolves when they are gone, or could not be removed.
  kj::Promise<void> close();

  size_t waiting() const { return pool.size(); }

 private:
  struct Waiting;
  void keep(const GatewayKind& kind, PreparedGateway gateway);
  size_t waitingFor(const GatewayKind& kind) const;
  bool wants(const GatewayKind& kind) const;
  kj::Promise<void> make(GatewayKind kind);
  void drop(size_t index);
  void dropWhere(const std::function<bool(const Waiting&)>& which);
  kj::Promise<void> remove(std::string socket, std::string name);
  void taskFailed(kj::Exception&& exception) override;

  supervisor::Supervisor& supervisor;
  Engines& engines;
  OnLeftover onLeftover;
  size_t number = 0;
  std::vector<std::string> sockets;
  bool closed = false;
  kj::PromiseFulfillerPair<void> ending = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> closing;
  std::vector<kj::Own<Waiting>> pool;
  std::map<std::string, kj::ForkedPromise<void>> making;  // by Engine: one at a time
  kj::TaskSet tasks;                                      // removals, most of all
};

}  // namespace oc::work
