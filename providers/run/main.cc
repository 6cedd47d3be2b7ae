// open-conduit-run: the shim of one run.
#include <kj/debug.h>
#include <stdio.h>
#include <unistd.h>

#include "by_hand.h"
#include "profile.h"
#include "providers/kit/kit.h"
#include "shim.h"

namespace oc::run {
namespace {

// What descriptors an instance gets; see proto/run.capnp.
enum Descriptor {
  processFd = 4,
  inputFd = 5,
  outputFd = 6,
  errorsFd = 7,
  attachedAgentFd = 5,  // of a container: instead of the three
  attachedGatewayFd = 6,
  listenFd = 8,
  logFd = 9,
  toolbeltFd = 10,
  networkLogFd = 11
};

// Records of a run's network log; what comes after is in its totals only.
constexpr uint64_t maxNetworkLog = 8u << 20;

class RunProvider final : public kit::Provider {
 public:
  std::string name() const override { return "run"; }

  std::string usage() const override {
    return "usage: open-conduit-run exec [--log FILE] [--timeout SECONDS] -- COMMAND...\n"
           "\n"
           "Runs a command as a run's shim would, without a sandbox and without a daemon: the command is started\n"
           "here, its streams are moved by a locked-down instance into the log, and its end is printed.\n";
  }

  void parse(const std::vector<std::string>& job) override {
    for (size_t i = 0; i < job.size(); ++i) {
      if (job[i] == "--container") {
        inContainer = true;
      } else if (job[i] == "--gateway") {
        withGateway = true;
      } else if (job[i] == "--network-log") {
        withNetworkLog = true;
      } else if (job[i] == "--toolbelt") {
        hasToolbelt = true;
      } else if (job[i] == "--orphan-seconds" && i + 1 < job.size()) {
        orphanSeconds = std::stoul(job[++i]);
      } else if (job[i] == "--file-limit" && i + 1 < job.size()) {
        fileLimit = std::stoull(job[++i]);
      } else {
        throw kit::UsageError{"unexpected word: " + job[i]};
      }
    }
    if (withGateway && !inContainer) throw kit::UsageError{"only a container has a gateway"};
  }

  kit::Profile profile() override {
    auto profile = run::profile();
    profile.maxFileSize = fileLimit;
    return profile;
  }

  capnp::Capability::Client serve(kit::Context& context) override {
    auto& io = context.io;
    shim = kj::heap<Shim>(io, takeAgent(io), takeListener(io, listenFd), kj::AutoCloseFd(logFd), options(),
                          takeGateway(io));
    if (hasToolbelt) shim->toolbeltAt(takeListener(io, toolbeltFd));
    gone = context.onDaemonGone.then([this]() { shim->commanderGone(1); }).eagerlyEvaluate(nullptr);
    return kj::heap<ShimServer>(*shim, [&context](proto::Instance::ProtectionsResults::Builder results) {
      kit::answerProtections(context, results);
    });
  }

  bool exitsWithDaemon() const override { return false; }
  int byHand(const std::vector<std::string>& words) override { return run::byHand(words); }

 private:
  AgentEnds takeAgent(kj::AsyncIoContext& io) {
    auto& low = *io.lowLevelProvider;
    process = kj::heap<Connection>(low.wrapSocketFd(kj::AutoCloseFd(processFd)), capnp::rpc::twoparty::Side::CLIENT,
                                   nullptr, instanceLimits(), "the agent's parent");
    if (inContainer) return takeAttached(low);
    return {{},
            low.wrapOutputFd(kj::AutoCloseFd(inputFd)),
            low.wrapInputFd(kj::AutoCloseFd(outputFd)),
            low.wrapInputFd(kj::AutoCloseFd(errorsFd)),
            process->bootstrapOfPeer().castAs<proto::Process>(),
            process->onDisconnect()};
  }

  AgentEnds takeAttached(kj::LowLevelAsyncIoProvider& low) {
    auto attached = low.wrapSocketFd(kj::AutoCloseFd(attachedAgentFd));
    auto input = kit::attachedInput(*attached);
    return {kj::mv(attached),       kj::mv(input), {}, {}, process->bootstrapOfPeer().castAs<proto::Process>(),
            process->onDisconnect()};
  }

  kj::Own<GatewayChannel> takeGateway(kj::AsyncIoContext& io) {
    if (!withGateway) return {};
    return kj::heap<GatewayChannel>(io.provider->getTimer(),
                                    io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(attachedGatewayFd)),
                                    NetworkLog(kj::AutoCloseFd(withNetworkLog ? networkLogFd : -1), maxNetworkLog));
  }

  kj::Own<kj::ConnectionReceiver> takeListener(kj::AsyncIoContext& io, int fd) {
    return io.lowLevelProvider->wrapListenSocketFd(kj::AutoCloseFd(fd));
  }

  ShimOptions options() {
    ShimOptions options;
    if (orphanSeconds != 0) options.orphanLimit = orphanSeconds * kj::SECONDS;
    options.leave = []() { _exit(0); };
    return options;
  }

  bool inContainer = false, withGateway = false, withNetworkLog = false;
  uint64_t orphanSeconds = 0, fileLimit = 0;
  bool hasToolbelt = false;
  kj::Own<Connection> process;
  kj::Own<Shim> shim;
  kj::Promise<void> gone = nullptr;
};

}  // namespace
}  // namespace oc::run

int main(int argc, char** argv) {
  oc::run::RunProvider provider;
  return oc::kit::providerMain(argc, argv, provider);
}
