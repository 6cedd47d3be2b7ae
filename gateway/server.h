// The gateway's side of its channel: gets the policy, once, and serves by it.
#pragma once

#include <kj/async-unix.h>
#include <proto/gateway.capnp.h>

#include <memory>
#include <string>

#include "loop.h"
#include "handover.h"
#include "proxy.h"
#include "records.h"
#include "toolbelt_relay.h"

namespace oc::gateway {

class GatewayServer final : public proto::Gateway::Server {
 public:
  GatewayServer(Loop& loop, kj::LowLevelAsyncIoProvider& io, ProxyLimits limits);

 protected:
  kj::Promise<void> configure(ConfigureContext context) override;
  kj::Promise<void> totals(TotalsContext context) override;
  kj::Promise<void> resolve(ResolveContext context) override;

 private:
  Loop& loop;
  kj::LowLevelAsyncIoProvider& io;
  ProxyLimits limits;
  bool configured = false;
  std::unique_ptr<Records> records;
  std::unique_ptr<Proxy> proxy;
  std::unique_ptr<ToolbeltRelay> toolbelt;
  std::unique_ptr<Handover> proxyPort, toolbeltPort;  // until the entry point has brought them
};

}  // namespace oc::gateway
