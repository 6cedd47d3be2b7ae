// Taking up a run that an earlier daemon started: whoever listens on its socket proves the run's key first.
#include <errno.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "agent_parts.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/spawn.h"
#include "proto/convert.h"
#include "proto/key_proof.h"
#include "proto/shim_peer.h"

namespace oc::work {

namespace {

constexpr size_t nonceSize = 32;

struct Adopting {
  kj::Own<Agent> agent;
  kj::Own<Connection> connection;
  std::string nonce = randomBytes(nonceSize);
};

// Nothing when nobody listens there.
kj::Maybe<kj::AutoCloseFd> connectTo(const std::string& path, std::string& why) {
  auto address = addressOf(path);
  auto fd = unixSocket();
  if (connect(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) < 0) {
    why = strerror(errno);
    return nullptr;
  }
  return kj::mv(fd);
}

}  // namespace

void killShim(pid_t pid) {
  if (pid <= 1) return;
  auto opened = kj::runCatchingExceptions([&]() {
    auto pidfd = openPidfd(pid);
    auto status = readProcessStatus(pid);
    bool isShim = status && status->name == std::string("open-conduit-run").substr(0, 15) && status->noNewPrivs &&
                  status->seccomp == 2;
    if (isShim) sendSignal(pidfd.get(), SIGKILL);
  });
  KJ_IF_MAYBE (exception, opened) {
    logDebug("{}", describe(*exception));
  }
}

kj::Promise<kj::Maybe<kj::Own<Agent>>> Agent::adopt(kj::AsyncIoContext& io, const std::string& socket,
                                                    const SecretBytes& key, uint64_t lastSeq, AgentListener& listener,
                                                    std::string& why, kj::Maybe<proto::Toolbelt::Client> toolbelt) {
  auto& timer = io.provider->getTimer();
  auto attempt = kj::evalNow([&]() -> kj::Promise<kj::Maybe<kj::Own<Agent>>> {
    auto fd = connectTo(socket, why);
    if (fd == nullptr) return kj::Maybe<kj::Own<Agent>>(nullptr);
    auto adopting = kj::heap<Adopting>();
    auto& ref = *adopting;
    ref.agent = kj::heap<Agent>(listener);
    auto stream = paced(io.lowLevelProvider->wrapSocketFd(kj::mv(KJ_REQUIRE_NONNULL(fd))), timer);
    ref.connection =
        kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, shimLimits(), "a run's shim");
    auto lobby = ref.connection->bootstrapOfPeer().castAs<proto::Lobby>();
    auto hello = lobby.helloRequest();
    hello.setVersion(proto::PROTOCOL_VERSION);
    hello.setNonce(toData(ref.nonce));
    return hello.send()
        .then([&ref, &timer, lobby, lastSeq, key = key.clone(), toolbelt](auto&& response) mutable {
          auto theirs = toString(response.getNonce());
          auto expected = proveKey(key.view(), "shim", ref.nonce, theirs);
          KJ_REQUIRE(equalSecrets(expected, toString(response.getProof())),
                     "what answers on the run's socket does not have the run's key");
          auto adopt = lobby.adoptRequest();
          adopt.setProof(toData(proveKey(key.view(), "daemon", theirs, ref.nonce)));
          adopt.setHost(hostFor(kj::addRef(*ref.agent->door), timer));
          adopt.setLastSeq(lastSeq);
          KJ_IF_MAYBE (offered, toolbelt) {
            adopt.setToolbelt(*offered);
          }
          return adopt.send();
        })
        .then([&ref](auto&& response) {
          auto session = response.getSession();
          ref.agent->session = session;
          // The earlier daemon may have died between the agent's start and saying so. If it was never started, its
          // parent is gone, and the shim will say that.
          return session.launchedRequest().send().ignoreResult();
        })
        .then([adopting = kj::mv(adopting)]() mutable -> kj::Maybe<kj::Own<Agent>> {
          auto agent = kj::mv(adopting->agent);
          agent->adopted = kj::mv(adopting->connection);
          agent->watchShim(agent->adopted->onDisconnect());
          return kj::mv(agent);
        });
  });
  return withDeadline(timer, agentCallLimit, "the run's shim", kj::mv(attempt))
      .catch_([&why](kj::Exception&& exception) -> kj::Maybe<kj::Own<Agent>> {
        why = describe(exception);
        return nullptr;
      });
}

}  // namespace oc::work
