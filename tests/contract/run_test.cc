// The shim, as a daemon meets it: the real program, with the real parent of an unsandboxed agent beside it.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/procfs.h"
#include "daemon/work/agent.h"
#include "proto/key_proof.h"
#include "tests/catch.h"

namespace oc {
namespace {

std::string programs() {
  const char* directory = getenv("OPEN_CONDUIT_PROGRAMS");
  REQUIRE(directory != nullptr);
  return directory;
}

// Keeps what the shim tells, and acknowledges it unless told otherwise.
class Listener final : public work::AgentListener {
 public:
  kj::Promise<void> onNote(uint64_t seq, const std::string& text) override {
    lastSeq = seq;
    notes.push_back(text);
    return kj::READY_NOW;
  }
  kj::Promise<void> onSession(uint64_t, const std::string&) override { return kj::READY_NOW; }
  kj::Promise<void> onUsage(uint64_t, const state::Usage&) override { return kj::READY_NOW; }
  kj::Promise<void> onNetwork(uint64_t, const state::NetworkTotals&) override { return kj::READY_NOW; }
  kj::Promise<void> onDenied(uint64_t, const state::Denial&) override { return kj::READY_NOW; }
  kj::Promise<void> onEnded(uint64_t seq, const work::AgentEnd& end) override {
    if (deaf) return kj::NEVER_DONE;
    lastSeq = seq;
    ++times;
    this->end = end;
    ended.fulfiller->fulfill();
    return kj::READY_NOW;
  }
  void onLost(const std::string& why) override { lost = why; }

  bool deaf = false;
  int times = 0;
  uint64_t lastSeq = 0;
  std::vector<std::string> notes;
  work::AgentEnd end;
  std::string lost;
  kj::PromiseFulfillerPair<void> ended = kj::newPromiseAndFulfiller<void>();
};

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  supervisor::Supervisor supervisor{io, programs()};
  std::string directory;
  SecretBytes key = SecretBytes::random(32);
  pid_t shim = 0, parent = 0;

  World() {
    char path[] = "/tmp/oc-run-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    directory = path;
  }
  ~World() {
    killAll();
    removeTree(directory);
  }

  work::AgentSpec spec(const std::string& script) {
    work::AgentSpec spec;
    spec.run = "r-test";
    spec.provider = "host";
    spec.command = {"/bin/sh", "-c", script};
    spec.environment = {{"PATH", "/usr/bin:/bin"}};
    spec.directory = directory;
    spec.socket = directory + "/shim.sock";
    spec.log = directory + "/log";
    spec.logLimit = 1 << 20;
    spec.graceSeconds = 1;
    return spec;
  }

  kj::Own<work::Agent> start(work::AgentSpec spec, Listener& listener) {
    auto started =
        work::Agent::start(supervisor, std::move(spec), key, listener, [this](pid_t theShim, pid_t theParent) {
          shim = theShim;
          parent = theParent;
        }).wait(io.waitScope);
    if (!started.ok()) FAIL(started.refusal().what);
    return kj::mv(started.value());
  }

  // What outlives a daemon outlives a test, too.
  void killAll() {
    for (pid_t pid : {shim, parent}) {
      if (pid > 1) kill(pid, SIGKILL);
    }
  }

  kj::Maybe<kj::Own<work::Agent>> adopt(const SecretBytes& withKey, uint64_t lastSeq, Listener& listener) {
    std::string why;
    return work::Agent::adopt(io, directory + "/shim.sock", withKey, lastSeq, listener, why).wait(io.waitScope);
  }

  void waitForEnd(Listener& listener) {
    auto late = io.provider->getTimer().afterDelay(60 * kj::SECONDS).then([]() { FAIL("the run did not end"); });
    kj::mv(listener.ended.promise).exclusiveJoin(kj::mv(late)).wait(io.waitScope);
  }

  // Until the file is there: the job's way of saying where it is.
  void waitForFile(const std::string& name) {
    for (int i = 0; i < 6000 && access((directory + "/" + name).c_str(), F_OK) < 0; ++i) {
      io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
    }
    REQUIRE(access((directory + "/" + name).c_str(), F_OK) == 0);
  }

  std::string log() { return readFile(directory + "/log", 4 << 20); }
};

TEST_CASE("A1 an unsandboxed job runs as the operator, and its exit status and output are known") {
  World world;
  Listener listener;
  auto agent = world.start(world.spec("echo out; echo err >&2; id -u; exit 7"), listener);
  world.waitForEnd(listener);
  CHECK(listener.end.process.known);
  CHECK_FALSE(listener.end.process.signaled);
  CHECK(listener.end.process.code == 7);
  CHECK(listener.end.stopped == proto::StopReason::NONE);
  CHECK_THAT(world.log(), hasText("out\n"));
  CHECK_THAT(world.log(), hasText("err\n"));
  CHECK_THAT(world.log(), hasText(std::to_string(geteuid()) + "\n"));
  agent->finish(world.supervisor.timer()).wait(world.io.waitScope);
}

TEST_CASE("the log has the output as it comes, without waiting for a line's end or for the other stream") {
  World world;
  Listener listener;
  auto agent = world.start(world.spec("printf half; : > said; while [ ! -e go ]; do sleep 0.05; done"), listener);
  world.waitForFile("said");
  for (int i = 0; i < 1000 && world.log().empty(); ++i) {
    world.io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(world.io.waitScope);
  }
  CHECK(world.log() == "half");
  writeFileAtomically(world.directory + "/go", "");
  world.waitForEnd(listener);
  CHECK(listener.end.process.code == 0);
}

TEST_CASE("the log keeps bytes that are no text, and stops at its cap") {
  World world;
  Listener listener;
  auto spec = world.spec("printf '\\000\\377\\033'; head -c 5000 /dev/zero; exit 0");
  spec.logLimit = 1000;
  auto agent = world.start(std::move(spec), listener);
  world.waitForEnd(listener);
  auto log = world.log();
  CHECK(log.substr(0, 3) == std::string("\0\377\033", 3));
  CHECK(log.size() < 1200);
  REQUIRE_FALSE(listener.notes.empty());
  CHECK_THAT(listener.notes[0], hasText("limit"));
}

TEST_CASE("nothing of a run's process tree is left, whatever it did") {
  World world;
  Listener listener;
  // A daemon of its own: two forks, a session of its own, every signal ignored.
  auto agent = world.start(
      world.spec("(setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > survivor; while :; do sleep 1; done' &) & "
                 "while [ ! -s survivor ]; do sleep 0.05; done; exit 0"),
      listener);
  world.waitForEnd(listener);
  auto pid = atoi(readFile(world.directory + "/survivor", 64).c_str());
  REQUIRE(pid > 1);
  CHECK(kill(pid, 0) < 0);
}

TEST_CASE("stop: TERM first, then KILL after the grace, and the reason is told") {
  World world;
  SECTION("a job that ends on TERM") {
    Listener listener;
    auto agent =
        world.start(world.spec("trap 'echo bye; exit 0' TERM; : > up; while :; do sleep 0.05; done"), listener);
    world.waitForFile("up");
    agent->stop(proto::StopReason::ASKED);
    world.waitForEnd(listener);
    CHECK(listener.end.stopped == proto::StopReason::ASKED);
    CHECK_THAT(world.log(), hasText("bye"));
  }
  SECTION("a job that ignores it") {
    Listener listener;
    auto agent = world.start(world.spec("trap '' TERM; : > up; while :; do sleep 0.05; done"), listener);
    world.waitForFile("up");
    agent->stop(proto::StopReason::DRAIN);
    world.waitForEnd(listener);
    CHECK(listener.end.stopped == proto::StopReason::DRAIN);
  }
}

TEST_CASE("timeout and stall_timeout end a run, and say which it was") {
  World world;
  Listener listener;
  auto spec = world.spec("while :; do echo tick; sleep 0.1; done");
  SECTION("timeout") {
    spec.timeoutSeconds = 1;
    auto agent = world.start(std::move(spec), listener);
    world.waitForEnd(listener);
    CHECK(listener.end.stopped == proto::StopReason::TIMEOUT);
  }
  SECTION("stall_timeout") {
    spec.command = {"/bin/sh", "-c", "echo once; sleep 600"};
    spec.stallSeconds = 1;
    auto agent = world.start(std::move(spec), listener);
    world.waitForEnd(listener);
    CHECK(listener.end.stopped == proto::StopReason::STALLED);
  }
}

TEST_CASE("B20 a run is taken up by who proves its key, and by nobody else") {
  World world;
  Listener first, stranger, second;
  auto agent = world.start(world.spec("while [ ! -e go ]; do sleep 0.05; done; echo done"), first);

  // Without the key, and with another run's.
  auto other = SecretBytes::random(32);
  CHECK(world.adopt(other, 0, stranger) == nullptr);
  // Control: with it, also while the first daemon is still connected; that one has lost the run then.
  auto adopted = world.adopt(world.key, 0, second);
  REQUIRE(adopted != nullptr);
  writeFileAtomically(world.directory + "/go", "");
  world.waitForEnd(second);
  CHECK(second.end.process.code == 0);
  CHECK(first.times == 0);
  CHECK(stranger.times == 0);
}

TEST_CASE("an event that was not acknowledged is told again to the next daemon, and one that was is not") {
  World world;
  Listener deaf, second, third;
  deaf.deaf = true;
  auto agent = world.start(world.spec("exit 5"), deaf);
  auto next = world.adopt(world.key, 0, second);
  REQUIRE(next != nullptr);
  world.waitForEnd(second);
  CHECK(second.end.process.code == 5);
  CHECK(second.times == 1);
  auto last = world.adopt(world.key, second.lastSeq, third);
  REQUIRE(last != nullptr);
  world.io.provider->getTimer().afterDelay(200 * kj::MILLISECONDS).wait(world.io.waitScope);
  CHECK(third.times == 0);
  KJ_IF_MAYBE (live, last) (*live)->finish(world.supervisor.timer()).wait(world.io.waitScope);
}

TEST_CASE("a shim whose daemon dies before the run begins is gone, too") {
  World world;
  auto process = makeSocketPair();
  auto in = makePipe(), out = makePipe(), err = makePipe();
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, (world.directory + "/shim.sock").c_str());
  REQUIRE(bind(listener, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(listener, 4) == 0);
  auto log = openFile(world.directory + "/log", O_WRONLY | O_CREAT, 0600);
  supervisor::LaunchSpec spec;
  spec.provider = "run";
  spec.descriptors = {{process.first.get(), 4}, {in.second.get(), 5}, {out.first.get(), 6},
                      {err.first.get(), 7},     {listener, 8},        {log.get(), 9}};
  spec.outlivesUs = true;
  auto shim = world.supervisor.start(std::move(spec)).wait(world.io.waitScope);
  close(listener);
  auto pidfd = openPidfd(shim->pid());
  auto ended = whenEnded(world.io.unixEventPort, pidfd);
  shim = nullptr;  // as a daemon's death: it outlives us, unless it has nothing to outlive us for
  auto late =
      world.io.provider->getTimer().afterDelay(60 * kj::SECONDS).then([]() { FAIL("the shim is still there"); });
  ended.ignoreResult().exclusiveJoin(kj::mv(late)).wait(world.io.waitScope);
}

TEST_CASE("an agent's parent that is killed takes the agent along, and the shim says so") {
  World world;
  Listener listener;
  auto agent = world.start(world.spec("echo $$ > pid; : > up; exec sleep 600"), listener);
  world.waitForFile("up");
  auto job = atoi(readFile(world.directory + "/pid", 64).c_str());
  REQUIRE(kill(job, 0) == 0);
  REQUIRE(kill(world.parent, SIGKILL) == 0);
  world.waitForEnd(listener);
  for (int i = 0; i < 500 && kill(job, 0) == 0; ++i) {
    world.io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(world.io.waitScope);
  }
  CHECK(kill(job, 0) < 0);
  CHECK(listener.end.stopped == proto::StopReason::FAILED);
  CHECK_THAT(listener.end.detail, hasText("the parent of the agent's processes went away"));
  CHECK_FALSE(listener.end.process.known);
}

TEST_CASE("G3 the shim holds streams and nothing else") {
  World world;
  Listener listener;
  auto agent = world.start(world.spec("while [ ! -e go ]; do sleep 0.05; done"), listener);
  auto status = readProcessStatus(world.shim);
  REQUIRE(status.has_value());
  CHECK(status->noNewPrivs);
  CHECK(status->seccomp == 2);
  CHECK(status->hasNoCapabilities());
  // Its log's limit is its own to keep, and the kernel's for one that does not: a MiB was granted.
  auto limits = readFile("/proc/" + std::to_string(world.shim) + "/limits", 65536);
  CHECK_THAT(limits, hasText("Max file size             134217728 "));
  CHECK_THAT(readFile("/proc/self/limits", 65536), hasText("Max file size             unlimited"));
  // Control: this program has none of that.
  auto own = readProcessStatus(getpid());
  REQUIRE(own.has_value());
  CHECK(own->seccomp == 0);
  writeFileAtomically(world.directory + "/go", "");
  world.waitForEnd(listener);
}

}  // namespace
}  // namespace oc
