// The toolbelt's socket: its connections go through the channel to the shim, which serves them.
#pragma once

#include <kj/async-io.h>
#include <proto/gateway.capnp.h>

#include <string>

#include "proto/byte_sink.h"

namespace oc::gateway {

class ToolbeltRelay final : private kj::TaskSet::ErrorHandler {
 public:
  // Listens at `path`; throws, naming it.
  ToolbeltRelay(kj::LowLevelAsyncIoProvider& io, const std::string& path, proto::GatewayHost::Client host);
  // Serves the connections of this one, too, which listens and does not block. For good.
  void listenAlso(kj::AutoCloseFd listener);

 private:
  void take(kj::Own<kj::AsyncIoStream> agent);
  kj::Promise<void> serve(kj::Own<kj::AsyncIoStream> agent);
  void taskFailed(kj::Exception&& exception) override;

  kj::LowLevelAsyncIoProvider& io;
  proto::GatewayHost::Client host;
  kj::Own<proto::RestingAnswers> answers;
  unsigned open = 0;
  kj::TaskSet tasks;
};

}  // namespace oc::gateway
