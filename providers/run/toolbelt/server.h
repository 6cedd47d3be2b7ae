// The toolbelt of one run, as its agent meets it: who shows the run's token gets a channel. Serves any stream, whether
// it came by the run's socket or by the gateway of its container.
//
// The first line is {"open_conduit": 1, "token": "…", "channel": "mcp" | "call" | "git-credential"}; what is refused
// gets one line {"error": {"reason", "what", "fix"}} and the end. Lines are JSON, of at most 1 MiB and 64 levels.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>

#include <functional>

#include "base/crypto.h"
#include "calls.h"
#include "operations.h"
#include "run.capnp.h"

namespace oc::run {

class ToolbeltServer final : private kj::TaskSet::ErrorHandler {
 public:
  // `runIsAlive` is asked when a connection comes. Throws for a set-up that it cannot serve.
  ToolbeltServer(kj::Timer& timer, proto::ToolbeltSetup::Reader setup, std::function<bool()> runIsAlive);
  ~ToolbeltServer() noexcept(false);

  // Accepts until the end.
  void listen(kj::Own<kj::ConnectionReceiver> listener);
  // One connection, until it ends. Never breaks. At most 16 at a time; another is told so.
  kj::Promise<void> serve(kj::Own<kj::AsyncIoStream> stream);

  // The daemon that calls go to, or that there is none right now.
  void attach(proto::Toolbelt::Client daemon) { calls.attach(kj::mv(daemon)); }
  void detach() { calls.detach(); }
  // Every call fails from now on, and connections are closed. For good.
  void revoke();

 private:
  kj::Promise<void> acceptLoop();
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer;
  SecretBytes token;  // as hex, as the agent shows it
  Operations operations;
  std::function<bool()> runIsAlive;
  DaemonCalls calls;
  kj::Own<kj::ConnectionReceiver> listener;
  size_t connections = 0;
  bool isRevoked = false;
  kj::PromiseFulfillerPair<void> revocation = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> onRevoked = revocation.promise.fork();
  kj::TaskSet tasks;
};

}  // namespace oc::run
