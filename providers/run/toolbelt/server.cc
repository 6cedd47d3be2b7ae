#include "server.h"

#include <kj/debug.h>
#include <kj/encoding.h>

#include "base/accept.h"
#include "base/log.h"
#include "base/text.h"
#include "connection.h"
#include "proto/convert.h"
#include "proto/rpc.h"

namespace oc::run {

namespace {

constexpr size_t tokenSize = 32;
constexpr size_t mostConnections = 16;

SecretBytes hexOf(capnp::Data::Reader token) {
  KJ_REQUIRE(token.size() == tokenSize, "the toolbelt's token has 32 bytes");
  auto hex = kj::encodeHex(token);
  SecretBytes result(std::string_view(hex.begin(), hex.size()));
  memset(hex.begin(), 0, hex.size());
  return result;
}

}  // namespace

ToolbeltServer::ToolbeltServer(kj::Timer& timer, proto::ToolbeltSetup::Reader setup, std::function<bool()> runIsAlive)
    : timer(timer),
      token(hexOf(setup.getToken())),
      operations(setup.getOperations()),
      runIsAlive(std::move(runIsAlive)),
      calls(timer),
      tasks(*this) {}

ToolbeltServer::~ToolbeltServer() noexcept(false) = default;

void ToolbeltServer::listen(kj::Own<kj::ConnectionReceiver> newListener) {
  listener = kj::mv(newListener);
  tasks.add(acceptLoop());
}

kj::Promise<void> ToolbeltServer::acceptLoop() {
  return acceptForever(*listener, timer, "the toolbelt's socket",
                       [this](kj::Own<kj::AsyncIoStream> stream) { tasks.add(serve(kj::mv(stream))); });
}

kj::Promise<void> ToolbeltServer::serve(kj::Own<kj::AsyncIoStream> stream) {
  auto connection =
      kj::heap<ToolbeltConnection>(ToolbeltConnection::World{timer, token, operations, calls}, kj::mv(stream));
  auto& ref = *connection;
  auto served = kj::evalNow([&]() -> kj::Promise<void> {
    if (isRevoked || !runIsAlive()) {
      return ref.refuse({"run_ended", "this run has ended, and its toolbelt with it", ""});
    }
    if (connections >= mostConnections) {
      return ref.refuse({"too_many_connections",
                         fmt::format("this run's toolbelt has {} connections already", mostConnections),
                         "close one first"});
    }
    ++connections;
    return ref.serve().exclusiveJoin(onRevoked.addBranch()).attach(kj::defer([this]() { --connections; }));
  });
  return served
      .catch_([](kj::Exception&& exception) { logDebug("a connection of the toolbelt: {}", describe(exception)); })
      .attach(kj::mv(connection));
}

void ToolbeltServer::revoke() {
  if (isRevoked) return;
  isRevoked = true;
  calls.revoke();
  revocation.fulfiller->fulfill();
}

void ToolbeltServer::taskFailed(kj::Exception&& exception) { logWarning("the toolbelt: {}", describe(exception)); }

}  // namespace oc::run
