#include <kj/debug.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "handshake.h"
#include "kit.h"

namespace oc::kit {

struct ByHandInstance::Impl {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Spawned spawned;
  pid_t serving = 0;
  kj::Maybe<kj::Own<Connection>> connection;
};

ByHandInstance::ByHandInstance(kj::Own<Impl> impl) : impl(kj::mv(impl)) {}
ByHandInstance::~ByHandInstance() = default;
kj::AsyncIoContext& ByHandInstance::io() { return impl->io; }
pid_t ByHandInstance::pid() const { return impl->serving; }

capnp::Capability::Client ByHandInstance::capability() {
  return KJ_REQUIRE_NONNULL(impl->connection, "the instance was finished")->bootstrapOfPeer();
}

void ByHandInstance::finish() {
  impl->connection = nullptr;
  int status;
  if (impl->serving != impl->spawned.pid) waitpid(impl->serving, &status, 0);
  waitpid(impl->spawned.pid, &status, 0);
}

namespace {

std::string ownProgram() {
  char path[4096];
  ssize_t n;
  KJ_SYSCALL(n = readlink("/proc/self/exe", path, sizeof(path)));
  return std::string(path, n);
}

}  // namespace

kj::Own<ByHandInstance> startByHand(const std::vector<std::string>& job, std::vector<std::pair<int, int>> descriptors,
                                    const Environment& more) {
  auto impl = kj::heap<ByHandInstance::Impl>();
  auto pair = makeSocketPair();
  SpawnSpec spec;
  spec.program = ownProgram();
  spec.arguments = {"--instance", "--"};
  spec.arguments.insert(spec.arguments.end(), job.begin(), job.end());
  spec.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}};
  spec.environment.insert(spec.environment.end(), more.begin(), more.end());
  descriptors.emplace_back(pair.second.get(), rpcDescriptor);
  descriptors.emplace_back(STDERR_FILENO, STDERR_FILENO);
  spec.descriptors = kj::mv(descriptors);
  spec.newSession = false;  // Ctrl-C reaches it as well
  impl->spawned = spawn(spec);
  pair.second = nullptr;

  auto stream = impl->io.lowLevelProvider->wrapSocketFd(kj::mv(pair.first));
  auto& serving = impl->serving;
  auto handshake = readHandshake(*stream, [&serving](pid_t pid) { serving = pid; }).wait(impl->io.waitScope);
  if (!handshake.ready) fail("the instance did not start: " + handshake.failure);
  impl->connection =
      kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "the instance");
  return kj::heap<ByHandInstance>(kj::mv(impl));
}

int printRefusal(const Refusal& refusal) {
  fprintf(stderr, "refused: %s\nwhy      %s\n", refusal.reason.c_str(), refusal.what.c_str());
  if (!refusal.fix.empty()) fprintf(stderr, "fix      %s\n", refusal.fix.c_str());
  return 1;
}

}  // namespace oc::kit
