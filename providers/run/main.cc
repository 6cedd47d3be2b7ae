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
enum Descriptor { processFd = 4, inputFd = 5, outputFd = 6, errorsFd = 7, listenFd = 8, logFd = 9, toolbeltFd = 10 };

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
      if (job[i] == "--toolbelt") {
        hasToolbelt = true;
        continue;
      }
      if (job[i] != "--orphan-seconds" || i + 1 == job.size()) throw kit::UsageError{"unexpected word: " + job[i]};
      orphanSeconds = std::stoul(job[++i]);
    }
  }

  kit::Profile profile() override { return run::profile(); }

  capnp::Capability::Client serve(kit::Context& context) override {
    auto& io = context.io;
    shim = kj::heap<Shim>(io, takeAgent(io), takeListener(io, listenFd), kj::AutoCloseFd(logFd), options());
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
    return {low.wrapOutputFd(kj::AutoCloseFd(inputFd)), low.wrapInputFd(kj::AutoCloseFd(outputFd)),
            low.wrapInputFd(kj::AutoCloseFd(errorsFd)), process->bootstrapOfPeer().castAs<proto::Process>(),
            process->onDisconnect()};
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

  uint64_t orphanSeconds = 0;
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
