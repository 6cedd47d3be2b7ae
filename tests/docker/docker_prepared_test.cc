// Gateways that are made ahead of their runs, on a real engine: whose they are, and what is left of them.
#include <algorithm>

#include "base/procfs.h"
#include "world.h"

namespace oc::test {
namespace {

using Things = std::vector<std::string>;

World::Change with(const std::string& gateway) {
  return [gateway](proto::RunSpec::Builder spec) {
    spec.setNetwork(true);
    spec.setPreparedGateway(toText(gateway));
  };
}

std::string nameOf(const World& world, const std::string& gateway) {
  return "open-conduit-" + world.owner + "-" + gateway + "-gateway";
}
bool isRunning(const std::string& name) { return ask("/containers/" + name + "/json")["State"]["Running"] == true; }

// What is left but the owner's network.
Things leftOf(const World& world) {
  auto things = thingsOf(world.owner);
  std::erase_if(things, [](auto& thing) { return thing.starts_with("network "); });
  return things;
}

// The soft limit, which is the first number.
uint64_t descriptorsOf(pid_t pid) {
  constexpr std::string_view name = "Max open files";
  auto limits = oc::readFile(fmt::format("/proc/{}/limits", pid), 1 << 16);
  auto at = limits.find(name);
  REQUIRE(at != std::string::npos);
  return std::stoull(limits.substr(at + name.size()));
}

}  // namespace

TEST_CASE("a gateway that was made ahead runs, locked down like a run's, and ends when its stream does") {
  World world;
  auto preparer = world.preparer();
  REQUIRE(world.prepareGateway(preparer, "g-1").what == "");
  auto stream = kj::mv(preparer.gatewayFd);
  auto name = nameOf(world, "g-1");
  auto made = ask("/containers/" + name + "/json");
  CHECK(made["State"]["Running"] == true);
  // Beside it, what a run makes for itself.
  auto instance = world.run();
  REQUIRE(world.create(instance, "cat", with("")).what == "");
  auto own = ask("/containers/" + world.gatewayId + "/json");
  for (auto field : {"CapDrop", "SecurityOpt", "ReadonlyRootfs", "PidsLimit", "Memory", "MemorySwap", "Sysctls",
                     "NetworkMode", "Ulimits", "IpcMode", "CgroupnsMode", "LogConfig", "Privileged"}) {
    INFO(field);
    CHECK(made["HostConfig"][field] == own["HostConfig"][field]);
  }
  CHECK(made["Config"]["User"] == own["Config"]["User"]);
  CHECK(made["Config"]["StdinOnce"] == true);
  preparer.kill();
  world.pause(300 * kj::MILLISECONDS);
  CHECK(isRunning(name));
  stream = nullptr;
  for (int i = 0; i < 100 && isRunning(name); ++i) world.pause(100 * kj::MILLISECONDS);
  CHECK_FALSE(isRunning(name));
}

TEST_CASE("a gateway has the descriptors of 16,384 connections, or as many as its engine can give") {
  World world;
  auto preparer = world.preparer();
  REQUIRE(world.prepareGateway(preparer, "g-1").what == "");
  auto gateway = ask("/containers/" + nameOf(world, "g-1") + "/json")["State"]["Pid"].get<pid_t>();
  auto status = readProcessStatus(gateway);
  REQUIRE(status);
  auto fromEngine = descriptorsOf(status->parent);
  CHECK(descriptorsOf(gateway) == std::min<uint64_t>(2 * 16384 + 2 * 256 + 128, fromEngine));
}

TEST_CASE("a run takes a gateway that was made ahead, and it goes with the run") {
  World world;
  auto preparer = world.preparer(), other = world.preparer();
  REQUIRE(world.prepareGateway(preparer, "g-1").what == "");
  REQUIRE(world.prepareGateway(other, "g-2").what == "");
  auto instance = world.run();
  REQUIRE(world.create(instance, "echo ready; cat", with("g-1")).what == "");
  auto agent = ask("/containers/" + world.agentId + "/json");
  CHECK(agent["Config"]["Labels"]["io.openconduit.gateway"] == "g-1");
  auto& mounts = agent["Mounts"];
  CHECK(std::any_of(mounts.begin(), mounts.end(), [&world](auto& mount) {
    return mount["Name"] == "open-conduit-" + world.owner + "-g-1" && mount["RW"] == false;
  }));
  CHECK(ask("/containers/" + nameOf(world, "g-1") + "/json")["Id"] == world.gatewayId);
  AttachedStream stream(world.io, kj::mv(instance.agentFd));
  REQUIRE(world.start(instance).what == "");
  REQUIRE(stream.waitForOutput("ready"));
  stream.end();
  CHECK(instance.wait().code == 0);
  // Another's is not this instance's to remove.
  CHECK(world.remove(instance, "r-1", "g-2").refusal.reason == "sandbox_denied");
  auto removed = world.remove(instance, "r-1", "g-1");
  CHECK(removed.left == Things{});
  CHECK(removed.removed == 3);
  CHECK(leftOf(world) == Things{"container /" + nameOf(world, "g-2"), "volume open-conduit-" + world.owner + "-g-2"});
  CHECK(isRunning(nameOf(world, "g-2")));
}

TEST_CASE("B5 whoever does not know a run's gateway finds it by the run's container; a sweep keeps both, or neither") {
  World world;
  auto preparer = world.preparer();
  REQUIRE(world.prepareGateway(preparer, "g-1").what == "");
  auto instance = world.run();
  REQUIRE(world.create(instance, "cat", with("g-1")).what == "");
  REQUIRE(world.start(instance).what == "");
  auto before = leftOf(world);
  auto task = world.task(4);
  CHECK(world.sweep(task, {"r-1"}).removed == 0);
  CHECK(leftOf(world) == before);
  CHECK(isRunning(nameOf(world, "g-1")));
  CHECK(world.remove(task).removed == 3);
  CHECK(leftOf(world) == Things{});

  auto again = world.preparer();
  REQUIRE(world.prepareGateway(again, "g-2").what == "");
  CHECK(world.sweep(task, {"r-1"}).removed == 2);
  CHECK(leftOf(world) == Things{});
}

TEST_CASE("a gateway that is not what the run asks for is refused, and nothing is left of the run or of it") {
  World world;
  struct Case {
    const char* what;
    std::function<void(World&)> spoil;
    World::Change change;
    const char* reason;
  };
  auto name = [](World& world) { return nameOf(world, "g-1"); };
  std::vector<Case> cases = {
      {"it is gone", [&](World& world) { api("/containers/" + name(world) + "?force=1", "-X DELETE"); }, nullptr,
       "sandbox_unavailable"},
      {"it has ended", [&](World& world) { api("/containers/" + name(world) + "/kill", "-X POST"); }, nullptr,
       "sandbox_unavailable"},
      {"another image", nullptr, [](proto::RunSpec::Builder spec) { spec.setGatewayImage(spec.getImage()); },
       "sandbox_unavailable"},
      {"another user", nullptr, [](proto::RunSpec::Builder spec) { spec.setUser("4000:4000"); }, "sandbox_unavailable"},
      {"a name that is a run's", nullptr, [](proto::RunSpec::Builder spec) { spec.setPreparedGateway("r-2"); },
       "sandbox_denied"},
  };
  for (auto& one : cases) {
    INFO(one.what);
    auto preparer = world.preparer();
    REQUIRE(world.prepareGateway(preparer, "g-1").what == "");
    if (one.spoil) one.spoil(world);
    auto instance = world.run();
    auto refusal = world.create(instance, "cat", [&one](proto::RunSpec::Builder spec) {
      with("g-1")(spec);
      if (one.change) one.change(spec);
    });
    CHECK(refusal.reason == one.reason);
    auto task = world.task(4);
    world.remove(task, "r-1", "g-1");
    CHECK(leftOf(world) == Things{});
  }
}

TEST_CASE("B5 kill -9 of the provider at any time while it makes a gateway leaves nothing that a sweep does not take") {
  World world;
  for (int milliseconds : {0, 5, 20, 40, 80, 120, 160, 250}) {
    auto preparer = world.preparer();
    auto request = preparer.docker().prepareGatewayRequest();
    auto spec = request.initSpec();
    spec.setOwner(toText(world.owner));
    spec.setName("g-1");
    spec.setImage(toText(world.gateway));
    spec.setUser(toText(World::user()));
    auto asked = request.send().ignoreResult().catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
    world.pause(milliseconds * kj::MILLISECONDS);
    preparer.kill();
    preparer.gatewayFd = nullptr;
    world.pause(700 * kj::MILLISECONDS);  // what the engine was asked for, it may still be doing
    auto task = world.task(4);
    CHECK(world.sweep(task).left == Things{});
    CHECK(thingsOf(world.owner) == Things{});
  }
}

}  // namespace oc::test
