// The door: what a connection has before it has shown the operator token.
#pragma once

#include <kj/refcount.h>
#include <kj/timer.h>

#include "base/crypto.h"
#include "control.capnp.h"
#include "daemon/control/backend.h"
#include "daemon/control/session.h"

namespace oc::control {

class FrontImpl final : public proto::Front::Server {
 public:
  FrontImpl(kj::Own<Session> session, kj::Timer& timer, const SecretBytes& token, Backend& backend)
      : session(kj::mv(session)), timer(timer), token(token), backend(backend) {}
  // A connection's bootstrap lives as long as the connection: with it end the waits of what it gave out.
  ~FrontImpl() noexcept(false) { session->close(); }

  kj::Promise<void> login(LoginContext context) override;

 private:
  kj::Own<Session> session;
  kj::Timer& timer;
  const SecretBytes& token;
  Backend& backend;
  unsigned failures = 0;
};

}  // namespace oc::control
