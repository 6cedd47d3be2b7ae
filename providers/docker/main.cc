// open-conduit-docker: the Engine's client. See proto/docker.capnp.
#include <fcntl.h>

#include "by_hand.h"
#include "job.h"
#include "profile.h"
#include "server.h"

namespace oc::docker {
namespace {

class DockerProvider final : public kit::Provider {
 public:
  std::string name() const override { return "docker"; }
  std::string usage() const override { return usageByHand; }
  kit::Profile profile() override { return docker::profile(); }
  bool exitsWithDaemon() const override { return job.kind == Kind::Task; }
  int byHand(const std::vector<std::string>& words) override { return docker::byHand(words); }

  void parse(const std::vector<std::string>& words) override {
    job = parseJob(words);
    if (job.kind == Kind::Run) requireDescriptor(shimDescriptor);
    for (unsigned i = 0; i < job.connections; ++i) requireDescriptor(firstConnection(job) + i);
  }

  capnp::Capability::Client serve(kit::Context& context) override {
    auto connections = kj::heapArrayBuilder<kj::Own<kj::AsyncIoStream>>(job.connections);
    for (unsigned i = 0; i < job.connections; ++i) {
      connections.add(context.io.lowLevelProvider->wrapSocketFd(kj::AutoCloseFd(firstConnection(job) + i)));
    }
    auto serveJob = job.kind == Kind::Run ? serveRun : serveTask;
    return serveJob(context, job, connections.finish());
  }

 private:
  static void requireDescriptor(int fd) {
    if (fcntl(fd, F_GETFD) < 0) throw kit::UsageError{fmt::format("descriptor {} is missing", fd)};
  }

  Job job;
};

}  // namespace
}  // namespace oc::docker

int main(int argc, char** argv) {
  oc::docker::DockerProvider provider;
  return oc::kit::providerMain(argc, argv, provider);
}
