// What a provider that was taken over may say to the daemon: it is cut off, and costs the daemon next to nothing.
// Without the bounds of proto/rpc.h the same words get through.
#include <capnp/rpc-twoparty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/fd.h"
#include "daemon/supervisor/supervisor.h"
#include "providers/kit/handshake.h"
#include "tests/attack/attacks.h"
#include "tests/attack/speech.h"
#include "tests/catch.h"
#include "tests/ordinary_user.h"

namespace oc {
namespace {

// Of one instance, whatever it says: flow control lets 2 MiB of calls wait, and a message costs a few times its size.
constexpr size_t mostGrowth = 64u << 20;

size_t residentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096;
}

std::string attacker() { return std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/tests/attacker"; }

std::vector<std::string> wordsFor(const std::string& what, const std::string& profile) {
  std::vector<std::string> words = {"--say", what, profile};
  for (auto& word : attack::toWords({})) words.push_back(word.empty() ? "-" : word);
  words.push_back("--");
  return words;
}

struct World {
  World() {
    test::becomeOrdinaryUser();
    char path[] = "/tmp/oc-say-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root = path;
    for (auto provider : {"docker", "run"}) {
      REQUIRE(symlink(attacker().c_str(), (root + "/open-conduit-" + provider).c_str()) == 0);
    }
  }
  ~World() { removeTree(root); }

  // What became of it: it did not start, or it was cut off, and why.
  std::string said(const std::string& what, const std::string& profile, bool carriesCalls) {
    supervisor::Supervisor supervisor(io, root);
    supervisor::LaunchSpec spec;
    spec.provider = profile;
    spec.job = wordsFor(what, profile);
    spec.carriesCalls = carriesCalls;
    auto ended = supervisor.start(std::move(spec)).then([](kj::Own<supervisor::Instance> instance) {
      auto& ref = *instance;
      return ref.onDisconnect().then([instance = kj::mv(instance)]() {
        return "cut off" + (instance->violation().empty() ? "" : ": " + instance->violation());
      });
    });
    auto late = io.provider->getTimer().afterDelay(60 * kj::SECONDS).then([]() { return std::string("it goes on"); });
    return ended.catch_([](kj::Exception&& exception) { return "refused: " + describe(exception); })
        .exclusiveJoin(kj::mv(late))
        .wait(io.waitScope);
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::string root;
};

// The same program on a connection without any bound of ours, for as long as it takes: does it get more than the bound
// from us, or is all that it says taken?
class Unbounded {
 public:
  explicit Unbounded(const std::string& what) : before(residentBytes()) {
    auto pair = makeSocketPair();
    SpawnSpec spec;
    spec.program = attacker();
    spec.arguments = {"--instance", "--"};
    for (auto& word : wordsFor(what, "docker")) spec.arguments.push_back(word);
    spec.environment = {{"PATH", "/usr/bin:/bin"}, {"ASAN_OPTIONS", "detect_leaks=0"}};
    spec.descriptors = {{STDERR_FILENO, STDERR_FILENO}, {pair.second.get(), 3}};
    spawned = spawn(spec);
    stream = io.lowLevelProvider->wrapSocketFd(kj::mv(pair.first));
    readHandshake(*stream, [this](pid_t pid) { serving = pid; }).wait(io.waitScope);
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 1u << 28;
    network = kj::heap<capnp::TwoPartyVatNetwork>(*stream, capnp::rpc::twoparty::Side::CLIENT, options);
    system = kj::heap<capnp::RpcSystem<capnp::rpc::twoparty::VatId>>(
        capnp::makeRpcServer(*network, capnp::Capability::Client(KJ_EXCEPTION(FAILED, "nothing"))));
    capnp::MallocMessageBuilder message;
    auto peer = message.initRoot<capnp::rpc::twoparty::VatId>();
    peer.setSide(capnp::rpc::twoparty::Side::SERVER);
    auto asked = system->bootstrap(peer).castAs<proto::Instance>().protectionsRequest().send().ignoreResult();
    answer = asked.eagerlyEvaluate([](kj::Exception&&) {});
  }
  ~Unbounded() {
    system = nullptr;
    network = nullptr;
    for (pid_t pid : {serving, spawned.pid}) {
      if (pid > 1) kill(pid, SIGKILL);
    }
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }
  // Grows beyond what a bounded connection may cost, within a minute.
  bool growsUs() {
    for (int i = 0; i < 6000; ++i) {
      io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
      if (residentBytes() > before + mostGrowth) return true;
    }
    return false;
  }

 private:
  kj::AsyncIoContext io = kj::setupAsyncIo();
  size_t before;
  Spawned spawned{0, nullptr};
  pid_t serving = 0;
  kj::Own<kj::AsyncIoStream> stream;
  kj::Own<capnp::TwoPartyVatNetwork> network;
  kj::Own<capnp::RpcSystem<capnp::rpc::twoparty::VatId>> system;
  kj::Promise<void> answer = nullptr;
};

}  // namespace

TEST_CASE("G3 whatever a compromised provider says, it is refused or cut off, and the daemon does not grow") {
  World world;
  for (auto& what : attack::allSpeeches()) {
    std::string answers[2];
    for (bool carriesCalls : {false, true}) {
      INFO(what << (carriesCalls ? ", a shim" : ", for one task"));
      auto before = residentBytes();
      auto answer = world.said(what, carriesCalls ? "run" : "docker", carriesCalls);
      CHECK_THAT(answer, hasText("cut off") || hasText("refused"));
      CHECK(residentBytes() < before + mostGrowth);
      answers[carriesCalls] = answer;
    }
    printf("| %s | %s | %s |\n", what.c_str(), answers[0].c_str(), answers[1].c_str());
  }
}

TEST_CASE("G3 without a bound, a compromised provider's words grow whoever listens") {
  test::becomeOrdinaryUser();
  CHECK(Unbounded("a message of 1 GiB").growsUs());
}

}  // namespace oc
