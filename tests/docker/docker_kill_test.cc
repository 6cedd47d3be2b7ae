// What is left when parts of a run die, on a real engine; and whose things are removed.
#include <fmt/format.h>

#include <set>

#include "world.h"

namespace oc::test {
namespace {

// Stands between an instance and the engine, and counts the calls. After call number `fatal` has been passed on it
// calls `atFatal`, once.
class Relay final : private kj::TaskSet::ErrorHandler {
 public:
  Relay(kj::AsyncIoContext& io, size_t fatal, std::function<void()> atFatal)
      : io(io), fatal(fatal), atFatal(std::move(atFatal)), tasks(*this) {}

  kj::AutoCloseFd connect() {
    auto pair = makeSocketPair();
    auto& low = *io.lowLevelProvider;
    auto& link = *links.emplace_back(
        std::make_unique<Link>(Link{low.wrapSocketFd(kj::mv(pair.first)), low.wrapSocketFd(dialEngine()), {}, {}}));
    tasks.add(passCalls(link));
    tasks.add(passAnswers(link));
    return kj::mv(pair.second);
  }

  size_t count() const { return calls; }
  const std::vector<std::string>& names() const { return seen; }

 private:
  struct Link {
    kj::Own<kj::AsyncIoStream> near, far;
    kj::byte up[65536], down[65536];
  };

  static bool isCall(kj::ArrayPtr<const kj::byte> bytes) {
    std::string_view text(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
    return text.starts_with("GET /") || text.starts_with("POST /") || text.starts_with("DELETE /");
  }

  kj::Promise<void> passCalls(Link& link) {
    return link.near->tryRead(link.up, 1, sizeof(link.up)).then([this, &link](size_t n) -> kj::Promise<void> {
      if (n == 0) {
        // A killed client's calls are done all the same: the engine keeps its end.
        if (!fired) link.far->shutdownWrite();
        return kj::READY_NOW;
      }
      auto bytes = kj::arrayPtr(link.up, n);
      bool last = false;
      if (isCall(bytes)) {
        last = ++calls == fatal;
        std::string line(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
        seen.push_back(line.substr(0, line.find(" HTTP")));
      }
      return link.far->write(link.up, n).then([this, &link, last]() {
        if (last) {
          fired = true;
          atFatal();
        }
        return passCalls(link);
      });
    });
  }

  kj::Promise<void> passAnswers(Link& link) {
    return link.far->tryRead(link.down, 1, sizeof(link.down)).then([this, &link](size_t n) -> kj::Promise<void> {
      if (n == 0) {
        link.near->shutdownWrite();
        return kj::READY_NOW;
      }
      return link.near->write(link.down, n).then([this, &link]() { return passAnswers(link); });
    });
  }

  void taskFailed(kj::Exception&&) override {}  // the instance is dead

  kj::AsyncIoContext& io;
  size_t fatal, calls = 0;
  bool fired = false;
  std::function<void()> atFatal;
  std::vector<std::string> seen;
  std::vector<std::unique_ptr<Link>> links;
  kj::TaskSet tasks;
};

void withNetwork(proto::RunSpec::Builder spec) { spec.setNetwork(true); }

bool isRunning(const std::string& id) { return ask("/containers/" + id + "/json")["State"]["Running"] == true; }

// "POST /v1.48/containers/ID/start"
std::string kindOf(std::string call) {
  call.resize(call.find('?') == std::string::npos ? call.size() : call.find('?'));
  auto id = call.find("/containers/");
  if (id != std::string::npos && call.size() > id + 12 + 64) call.replace(id + 12, 64, "ID");
  return call;
}

// The whole life of a run, as far as the instance lives.
void liveOn(World& world, DockerInstance& instance) {
  try {
    if (world.create(instance, "cat", withNetwork).reason != "") return;
    AttachedStream agent(world.io, kj::mv(instance.agentFd)), gateway(world.io, kj::mv(instance.gatewayFd));
    if (world.start(instance).reason != "") return;
    agent.end();
    instance.wait();
    world.remove(instance);
  } catch (const kj::Exception&) {  // it is dead
  }
}

}  // namespace

TEST_CASE(
    "B5 kill -9 of the provider at each call of a run leaves nothing that the next start does not take, and nobody else's is touched") {
  World other;
  auto bystander = other.run("r-1");
  REQUIRE(other.create(bystander, "echo ready; cat", withNetwork).what == "");
  AttachedStream theirs(other.io, kj::mv(bystander.agentFd)), theirGateway(other.io, kj::mv(bystander.gatewayFd));
  REQUIRE(other.start(bystander).what == "");
  auto before = thingsOf(other.owner);
  REQUIRE(before.size() == 4);

  size_t fatal = 1;
  std::set<std::string> kinds;
  for (;; ++fatal) {
    World world(other);
    DockerInstance* dying = nullptr;
    Relay relay(world.io, fatal, [&dying]() {
      if (dying != nullptr) dying->kill();
    });
    auto instance = world.run("r-1", [&relay]() { return relay.connect(); });
    dying = &instance;
    liveOn(world, instance);
    if (relay.count() < fatal) break;
    // What the engine was asked for, it may still be doing.
    world.pause(700 * kj::MILLISECONDS);
    INFO("killed after " << relay.names()[fatal - 1]);
    auto next = world.task();
    auto swept = world.sweep(next);
    CHECK(swept.refusal.what == "");
    CHECK(swept.left == std::vector<std::string>{});
    CHECK(thingsOf(world.owner) == std::vector<std::string>{});
    kinds.insert(kindOf(relay.names()[fatal - 1]));
  }
  CHECK(fatal > 15);
  CHECK(kinds.size() >= 11);
  CHECK(thingsOf(other.owner) == before);
  CHECK(isRunning(other.agentId));
}

TEST_CASE("a run outlives the daemon, and its containers end with the shim") {
  World world;
  auto instance = world.run();
  REQUIRE(world.create(instance, "echo ready; cat; sleep 1000", withNetwork).what == "");
  AttachedStream agent(world.io, kj::mv(instance.agentFd)), gateway(world.io, kj::mv(instance.gatewayFd));
  REQUIRE(world.start(instance).what == "");
  REQUIRE(agent.waitForOutput("ready"));
  instance.daemon = nullptr;
  world.pause(300 * kj::MILLISECONDS);
  CHECK(isRunning(world.agentId));
  agent.write("still here\n");
  CHECK(agent.waitForOutput("still here"));
  instance.process = nullptr;
  CHECK(instance.endsByItself());
  CHECK_FALSE(isRunning(world.agentId));
  CHECK_FALSE(isRunning(world.gatewayId));
}

TEST_CASE("a run that is just being started outlives the daemon, too") {
  World world;
  auto instance = world.run();
  REQUIRE(world.create(instance, "echo ready; cat; sleep 1000", withNetwork).what == "");
  AttachedStream agent(world.io, kj::mv(instance.agentFd)), gateway(world.io, kj::mv(instance.gatewayFd));
  {
    auto starting = instance.docker().startRequest().send();
    world.pause(1 * kj::MILLISECONDS);
    instance.daemon = nullptr;
  }
  REQUIRE(agent.waitForOutput("ready"));
  world.pause(500 * kj::MILLISECONDS);
  CHECK(isRunning(world.agentId));
  CHECK(isRunning(world.gatewayId));
  agent.write("still here\n");
  CHECK(agent.waitForOutput("still here"));
  instance.process = nullptr;
  CHECK(instance.endsByItself());
  CHECK_FALSE(isRunning(world.agentId));
}

TEST_CASE("an instance whose daemon dies as it begins ends in order") {
  auto io = kj::setupAsyncIo();
  for (int wait = 0; wait <= 30; wait += 2) {
    auto rpc = makeSocketPair(), errors = makePipe();
    std::vector<FdPair> others;
    SpawnSpec spec;
    spec.program = variable("OPEN_CONDUIT_PROGRAMS") + "/open-conduit-docker";
    spec.arguments = {"--instance", "--", "run", "--run", "r-1", "--owner", "oc-test", "--context", "tests"};
    spec.descriptors = {{rpc.second.get(), 3}, {errors.second.get(), 2}};
    for (int fd = 4; fd < 10; ++fd) {
      others.push_back(makeSocketPair());
      spec.descriptors.emplace_back(others.back().second.get(), fd);
    }
    auto spawned = spawn(spec);
    rpc.second = nullptr;
    errors.second = nullptr;
    for (auto& pair : others) pair.second = nullptr;
    io.provider->getTimer().afterDelay(wait * kj::MILLISECONDS).wait(io.waitScope);
    rpc.first = nullptr;
    others.clear();
    CHECK_THAT(readAll(errors.first.get(), 1 << 16), !hasText("EventLoop"));
    waitpid(spawned.pid, nullptr, 0);
  }
}

TEST_CASE("what was made and never started goes with the daemon, and with the shim") {
  for (bool shimFirst : {false, true}) {
    World world;
    auto instance = world.run();
    REQUIRE(world.create(instance, "cat", withNetwork).what == "");
    (shimFirst ? instance.process : instance.daemon) = nullptr;
    CHECK(instance.endsByItself());
    CHECK(thingsOf(world.owner) == std::vector<std::string>{"network open-conduit-egress-" + world.owner});
  }
}

TEST_CASE("a run that was stopped before its start does not start; and what is not its own, an instance leaves alone") {
  World world;
  auto instance = world.run();
  REQUIRE(world.create(instance, "cat").what == "");
  CHECK(world.remove(instance, "r-2").refusal.reason == "sandbox_denied");
  instance.signal(SIGTERM);
  CHECK(world.start(instance).reason == "sandbox_unavailable");
  for (int number : {SIGINT, SIGHUP, 0, 1000}) CHECK_THROWS(instance.signal(number));

  World stranger(world);
  auto task = stranger.task();
  auto request = task.docker().removeRequest();
  request.setOwner(toText(world.owner));
  request.setRun("r-1");
  CHECK(read(request.send().wait(stranger.io.waitScope).getRefusal()).reason == "sandbox_denied");
  CHECK(thingsOf(world.owner).size() == 1);
}

TEST_CASE("F3 a container of an earlier attempt is stopped before the next one") {
  World world;
  std::string first;
  {
    auto instance = world.run();
    REQUIRE(world.create(instance, "echo ready; sleep 1000").what == "");
    REQUIRE(world.start(instance).what == "");
    first = world.agentId;
    instance.kill();
  }
  CHECK(isRunning(first));
  auto ran = world.runToEnd("echo again");
  CHECK(ran.refusal.what == "");
  CHECK(ran.streams.output == "again\n");
  CHECK(ask("/containers/" + first + "/json").contains("message"));
}

TEST_CASE("B5 a sweep keeps the runs that it is told to keep, and the network that they use") {
  World world;
  auto kept = world.run("kept"), gone = world.run("gone");
  auto named = [](const char* name) {
    return [name](proto::RunSpec::Builder spec) {
      spec.setRun(name);
      spec.setNetwork(true);
    };
  };
  REQUIRE(world.create(kept, "cat", named("kept")).what == "");
  auto keptId = world.agentId;
  REQUIRE(world.start(kept).what == "");
  REQUIRE(world.create(gone, "cat", named("gone")).what == "");
  REQUIRE(world.start(gone).what == "");
  auto task = world.task(4);
  auto swept = world.sweep(task, {"kept"});
  CHECK(swept.removed == 3);
  CHECK(swept.left.empty());
  CHECK(isRunning(keptId));
  CHECK(thingsOf(world.owner).size() == 4);
  CHECK(world.sweep(task).removed == 4);
  CHECK(world.sweep(task).removed == 0);
  CHECK(thingsOf(world.owner).empty());
}

TEST_CASE("two may remove the same, and what somebody else has removed already is no failure") {
  World world;
  auto instance = world.run();
  REQUIRE(world.create(instance, "cat", withNetwork).what == "");
  REQUIRE(world.start(instance).what == "");
  auto one = world.task(), other = world.task();
  auto request = [&world](DockerInstance& task) {
    auto request = task.docker().removeRequest();
    request.setOwner(toText(world.owner));
    request.setRun("r-1");
    return request.send();
  };
  auto first = request(one), second = request(other);
  auto firstTold = World::told(first.wait(world.io.waitScope)),
       secondTold = World::told(second.wait(world.io.waitScope));
  CHECK(firstTold.left == std::vector<std::string>{});
  CHECK(secondTold.left == std::vector<std::string>{});
  CHECK(firstTold.removed + secondTold.removed >= 3);
  CHECK(instance.wait().known);
}

TEST_CASE("twenty runs at once, one network") {
  World world;
  std::vector<std::unique_ptr<DockerInstance>> instances;
  std::vector<kj::Promise<void>> created;
  for (int i = 0; i < 20; ++i) {
    auto name = fmt::format("r-{}", i);
    instances.push_back(std::make_unique<DockerInstance>(
        world.io, std::vector<std::string>{"run", "--owner", world.owner, "--run", name}, 5, dialEngine));
    auto request = instances.back()->docker().createRequest();
    world.fill(request.initSpec(), "echo hello; cat", name);
    request.getSpec().setNetwork(true);
    auto* instance = instances.back().get();
    created.push_back(request.send()
                          .then([instance](auto answer) {
                            REQUIRE(read(answer.getRefusal()).what == "");
                            return instance->docker().startRequest().send().then(
                                [](auto answer) { REQUIRE(read(answer.getRefusal()).what == ""); });
                          })
                          .eagerlyEvaluate(nullptr));
  }
  for (auto& promise : created) promise.wait(world.io.waitScope);
  CHECK(thingsOf(world.owner).size() == 20 * 3 + 1);
  auto task = world.task(4);
  auto swept = world.sweep(task);
  CHECK(swept.left == std::vector<std::string>{});
  CHECK(thingsOf(world.owner).empty());
}

}  // namespace oc::test
