#include "lobby.h"

#include <kj/debug.h>

#include "base/crypto.h"
#include "proto/convert.h"
#include "proto/key_proof.h"
#include "shim.h"

namespace oc::run {

namespace {
constexpr size_t nonceSize = 32;
}

LobbyServer::LobbyServer(Shim& shim) : shim(shim) {}

kj::Promise<void> LobbyServer::hello(HelloContext context) {
  auto params = context.getParams();
  KJ_REQUIRE(params.getNonce().size() == nonceSize, "a nonce has 32 bytes");
  callersNonce = toString(params.getNonce());
  callersVersion = params.getVersion();
  ownNonce = randomBytes(nonceSize);
  auto results = context.getResults();
  results.setVersion(proto::PROTOCOL_VERSION);
  results.setNonce(toData(ownNonce));
  results.setProof(toData(proveKey(shim.runKey().view(), "shim", callersNonce, ownNonce)));
  return kj::READY_NOW;
}

kj::Promise<void> LobbyServer::adopt(AdoptContext context) {
  auto params = context.getParams();
  auto expected = proveKey(shim.runKey().view(), "daemon", ownNonce, callersNonce);
  bool proved = !ownNonce.empty() && equalSecrets(expected, toString(params.getProof()));
  ownNonce.clear();  // a nonce serves once
  if (!proved) {
    shared->closed.fulfiller->fulfill();
    KJ_FAIL_REQUIRE("that is not this run's key");
  }
  context.getResults().setSession(
      shim.adopt(params.getHost(), params.getLastSeq(), callersVersion, params.getToolbelt()));
  shared->commander = shim.commander();
  shared->adopted();
  return kj::READY_NOW;
}

}  // namespace oc::run
