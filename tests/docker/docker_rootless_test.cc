// A rootless engine, whose root is whoever runs it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "world.h"

namespace oc::test {
namespace {

constexpr auto none = "no rootless engine, which tests/run makes as root for its user";

// For as long as it is there, the tests' engine is the rootless one that tests/run made for its user.
class OnRootlessEngine {
 public:
  OnRootlessEngine() {
    use("OPEN_CONDUIT_TEST_ENGINE", variable("OPEN_CONDUIT_TEST_ROOTLESS_ENGINE"));
    use("OPEN_CONDUIT_TEST_PROBE_IMAGE", variable("OPEN_CONDUIT_TEST_ROOTLESS_PROBE"));
    use("OPEN_CONDUIT_TEST_SHELL_IMAGE", variable("OPEN_CONDUIT_TEST_ROOTLESS_SHELL"));
  }
  ~OnRootlessEngine() {
    for (auto& [name, value] : before) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  void use(const char* name, const std::string& value) {
    before.emplace_back(name, variable(name));
    setenv(name, value.c_str(), 1);
  }
  std::vector<std::pair<std::string, std::string>> before;
};

// The owner of a file that a container made in a folder that was mounted into it.
uid_t ownerOfWhatIsMade(World& world, const std::string& user) {
  std::string folder = "/tmp/oc-rootless-XXXXXX";
  KJ_REQUIRE(mkdtemp(folder.data()) != nullptr);
  chmod(folder.c_str(), 0777);
  auto made = folder + "/made";
  auto asUserWithFolder = [&](proto::RunSpec::Builder spec) {
    spec.setUnlimited(true);
    spec.setUser(toText(user));
    auto mount = spec.initMounts(1)[0];
    mount.setSource(toText(folder));
    mount.setTarget(toText(folder));
    mount.setWritable(true);
  };
  auto ran = world.runToEnd("echo x >" + made + " && cat " + made, asUserWithFolder);
  CHECK(ran.refusal.what == "");
  CHECK(ran.streams.output == "x\n");
  struct stat stats {};
  CHECK(stat(made.c_str(), &stats) == 0);
  world.runToEnd("rm " + made, asUserWithFolder);
  CHECK(rmdir(folder.c_str()) == 0);
  return stats.st_uid;
}

}  // namespace

TEST_CASE("B8 on a rootless engine, too, what a container makes in a granted folder is yours") {
  if (getenv("OPEN_CONDUIT_TEST_ROOTLESS_ENGINE") == nullptr) OC_SKIP(none);
  OnRootlessEngine rootless;
  World world;
  auto task = world.task();
  auto engine = task.docker().engineRequest().send().wait(world.io.waitScope);
  CHECK(engine.getEngine().getRootless());
  // As the daemon has it run: the engine's root, who outside is whoever runs the engine.
  CHECK(ownerOfWhatIsMade(world, "0:0") == getuid());
  // The positive control: somebody else inside is somebody else outside.
  CHECK(ownerOfWhatIsMade(world, World::user()) != getuid());
}

TEST_CASE("a rootless engine that keeps no limits refuses a run with one, and makes a gateway without them") {
  if (getenv("OPEN_CONDUIT_TEST_ROOTLESS_ENGINE") == nullptr) OC_SKIP(none);
  OnRootlessEngine rootless;
  World world;
  auto task = world.task();
  auto engine = task.docker().engineRequest().send().wait(world.io.waitScope);
  if (engine.getEngine().getCanLimitPids()) return;  // cgroup v2
  auto refused = world.run();
  auto refusal = world.create(refused, "true");
  CHECK(refusal.reason == "sandbox_unavailable");
  CHECK(refusal.what.find("limit") != std::string::npos);
  auto ran = world.runToEnd("echo hello", [](proto::RunSpec::Builder spec) {
    spec.setUnlimited(true);
    spec.setUser("0:0");
    spec.setNetwork(true);
  });
  CHECK(ran.refusal.what == "");
  CHECK(ran.streams.output == "hello\n");
}

TEST_CASE("B4 a rootless engine under the second version of control groups keeps limits") {
  if (getenv("OPEN_CONDUIT_TEST_ROOTLESS_ENGINE") == nullptr) OC_SKIP(none);
  OnRootlessEngine rootless;
  World world;
  auto task = world.task();
  auto engine = task.docker().engineRequest().send().wait(world.io.waitScope);
  if (!engine.getEngine().getCanLimitPids()) return;  // the first version; see above
  auto asRoot = [](proto::RunSpec::Builder spec) {
    spec.setUser("0:0");
    spec.setPids(20);
    spec.setMemoryBytes(64u << 20);
  };
  auto told =
      world.runToEnd("cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.swap.max", asRoot);
  CHECK(told.refusal.what == "");
  CHECK(told.streams.output == "20\n67108864\n0\n");
  auto bomb =
      world.runToEnd("i=0; while test $i -lt 60; do sleep 5 & i=$((i+1)); done 2>/dev/null; echo reached $i", asRoot);
  CHECK(bomb.streams.output.find("reached 60") == std::string::npos);
  auto fine = world.runToEnd("i=0; while test $i -lt 60; do sleep 0.1 & i=$((i+1)); done; echo reached $i",
                             [](proto::RunSpec::Builder spec) { spec.setUser("0:0"), spec.setPids(200); });
  CHECK(fine.streams.output == "reached 60\n");
}

}  // namespace oc::test
