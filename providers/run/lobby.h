// The run's socket, before the key is proved.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <memory>
#include <string>

#include "run.capnp.h"

namespace oc::run {

class Shim;

class LobbyServer final : public proto::Lobby::Server {
 public:
  struct State {
    uint64_t commander = 0;                                                      // not 0: adopted, and by which
    kj::Function<void()> adopted = []() {};                                      // called when it is
    kj::PromiseFulfillerPair<void> closed = kj::newPromiseAndFulfiller<void>();  // to be cut off
  };

  explicit LobbyServer(Shim& shim);
  kj::Promise<void> hello(HelloContext context) override;
  kj::Promise<void> adopt(AdoptContext context) override;
  std::shared_ptr<State> state() { return shared; }

 private:
  Shim& shim;
  std::shared_ptr<State> shared = std::make_shared<State>();
  std::string callersNonce, ownNonce;
  uint32_t callersVersion = 0;
};

}  // namespace oc::run
