// Where a run's control groups are made, and what is written there, by what the kernel says of this process: made-up
// files, so that both versions can be looked at on any machine. tests/e2e/limits.sh has the kernel's own.
#include "daemon/work/cgroup.h"

#include <fmt/format.h>
#include <kj/async-io.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/spawn.h"
#include "base/watch.h"
#include "tests/catch.h"

using namespace oc;
using config::ResourceLimits;
using work::RunCgroups;

namespace {

class Kernel {
 public:
  Kernel() {
    char path[] = "/tmp/oc-cgroup-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root = path;
  }
  ~Kernel() { removeTree(root); }

  void put(const std::string& path, const std::string& text) {
    makeDirectories((root + "/" + path).substr(0, (root + "/" + path).rfind('/')));
    writeFileAtomically(root + "/" + path, text);
  }
  std::string get(const std::string& path) { return readFile(root + "/" + path, 1 << 16); }
  bool isThere(const std::string& path) { return access((root + "/" + path).c_str(), F_OK) == 0; }

  // "0::/a" of the second version, "4:memory:/b" of the first; mounted where said.
  RunCgroups groups(const std::string& own, const std::string& mounts) {
    put("own", own);
    put("mounts", mounts);
    return RunCgroups({root + "/own", root + "/mounts"});
  }
  std::string second() const { return "30 23 0:26 / " + root + "/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"; }
  std::string first(const std::string& controllers, const std::string& at) const {
    return "31 23 0:27 / " + root + "/" + at + " rw,nosuid - cgroup cgroup rw," + controllers + "\n";
  }

  std::string root;
};

ResourceLimits all() {
  ResourceLimits limits;
  limits.memory = "300m";
  limits.pids = 100;
  limits.cpus = 1.5;
  return limits;
}

}  // namespace

TEST_CASE("without limits there is no control group") {
  Kernel kernel;
  auto made = kernel.groups("0::/\n", "").make("r-1", {});
  REQUIRE(made.ok());
  CHECK(made.value().empty());
}

TEST_CASE(
    "a run's limits in the second version: the daemon goes into a leaf, and the limits lie above the agent's group") {
  Kernel kernel;
  auto base = std::string("unified/user/service");
  kernel.put(base + "/cgroup.controllers", "cpu memory pids\n");
  kernel.put(base + "/cgroup.subtree_control", "");
  kernel.put(base + "/cgroup.procs", "41\n42\n");
  kernel.put(base + "/open-conduit-daemon/cgroup.procs", "");
  for (auto name : {"memory.max", "memory.swap.max", "pids.max", "cpu.max"}) {
    kernel.put(base + "/open-conduit-r-1/" + name, "");
  }
  auto own = std::string("0::/user/service\n");
  SECTION("when it is asked the first time") {}
  SECTION("when the daemon is in its leaf already") { own = "0::/user/service/open-conduit-daemon\n"; }
  auto made = kernel.groups(own, kernel.second()).make("r-1", all());
  REQUIRE(made.ok());
  CHECK(made.value() == std::vector<std::string>{kernel.root + "/" + base + "/open-conduit-r-1/agent"});
  CHECK(kernel.get(base + "/open-conduit-r-1/memory.max") == "314572800");
  CHECK(kernel.get(base + "/open-conduit-r-1/memory.swap.max").starts_with("0"));
  CHECK(kernel.get(base + "/open-conduit-r-1/pids.max") == "164");
  CHECK(kernel.get(base + "/open-conduit-r-1/cpu.max") == "150000 100000");
  // A file of the kernel's takes each write by itself; of a plain one the last is seen.
  CHECK(kernel.get(base + "/open-conduit-daemon/cgroup.procs") == "42");
  CHECK(kernel.get(base + "/cgroup.subtree_control").starts_with("+"));
}

TEST_CASE("a run's limits in the first version: a group in each controller's hierarchy, beneath the daemon's own") {
  Kernel kernel;
  for (auto& [name, text] : {std::pair("memory/a/open-conduit-r-1/memory.limit_in_bytes", ""),
                             {"pids/b/open-conduit-r-1/pids.max", ""},
                             {"cpu/c/open-conduit-r-1/cpu.cfs_period_us", ""},
                             {"cpu/c/open-conduit-r-1/cpu.cfs_quota_us", ""}}) {
    kernel.put(name, text);
  }
  auto groups = kernel.groups(
      "9:memory:/a\n8:pids:/b\n7:cpu,cpuacct:/c\n0::/\n",
      kernel.first("memory", "memory") + kernel.first("pids", "pids") + kernel.first("cpu,cpuacct", "cpu"));
  auto made = groups.make("r-1", all());
  REQUIRE(made.ok());
  CHECK(made.value() == std::vector<std::string>{kernel.root + "/memory/a/open-conduit-r-1/agent",
                                                 kernel.root + "/pids/b/open-conduit-r-1/agent",
                                                 kernel.root + "/cpu/c/open-conduit-r-1/agent"});
  CHECK(kernel.get("memory/a/open-conduit-r-1/memory.limit_in_bytes") == "314572800");
  CHECK(kernel.get("cpu/c/open-conduit-r-1/cpu.cfs_quota_us") == "150000");
}

TEST_CASE(
    "F2 a limit without a control group that the daemon may divide is refused, by its name, and nothing is left") {
  Kernel kernel;
  ResourceLimits memory;
  memory.memory = "1g";
  auto refused = kernel.groups("0::/\n", "").make("r-1", memory);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.refusal().reason == "sandbox_unavailable");
  CHECK(refused.refusal().what.find("limits.memory") != std::string::npos);
  CHECK(refused.refusal().fix.find("Delegate") != std::string::npos);

  // The first of two can be had.
  kernel.put("memory/a/open-conduit-r-1/memory.limit_in_bytes", "");
  ResourceLimits two = memory;
  two.pids = 50;
  auto half = kernel.groups("9:memory:/a\n", kernel.first("memory", "memory")).make("r-1", two);
  REQUIRE_FALSE(half.ok());
  CHECK(half.refusal().what.find("limits.pids") != std::string::npos);
  CHECK_FALSE(kernel.isThere("memory/a/open-conduit-r-1/agent"));
}

TEST_CASE("what a run met of its limits is told when its groups are removed") {
  Kernel kernel;
  kernel.put("memory/open-conduit-r-1/memory.events", "low 0\noom 2\noom_kill 2\n");
  kernel.put("pids/open-conduit-r-1/pids.events", "max 7\n");
  kernel.put("quiet/open-conduit-r-1/pids.events", "max 0\n");
  for (auto name : {"memory", "pids", "quiet"}) makeDirectories(kernel.root + "/" + name + "/open-conduit-r-1/agent");
  auto folder = [&](const char* name) { return kernel.root + "/" + name + "/open-conduit-r-1/agent"; };
  CHECK(RunCgroups::remove({folder("memory"), folder("pids"), folder("quiet"), folder("absent")}) ==
        std::vector<std::string>{"limits.memory: the kernel killed 2 of its processes",
                                 "limits.pids: 7 more processes were refused"});
  CHECK_FALSE(kernel.isThere("memory/open-conduit-r-1/agent"));
}

TEST_CASE("F2 a service's own group of the second version is not divided: systemd could not start it again there") {
  Kernel kernel;
  auto base = std::string("unified/user/service");
  kernel.put(base + "/cgroup.controllers", "cpu memory pids\n");
  kernel.put(base + "/cgroup.procs", "41\n");
  kernel.put("mounts", kernel.second());
  ResourceLimits memory;
  memory.memory = "1g";
  auto makeAs = [&](const std::string& own) {
    kernel.put("own", own);
    return RunCgroups({kernel.root + "/own", kernel.root + "/mounts", true}).make("r-1", memory);
  };
  auto refused = makeAs("0::/user/service\n");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.refusal().what.find("DelegateSubgroup=open-conduit-daemon") != std::string::npos);
  CHECK_FALSE(kernel.isThere(base + "/open-conduit-daemon"));

  kernel.put(base + "/cgroup.subtree_control", "");
  kernel.put(base + "/open-conduit-r-1/memory.max", "");
  CHECK(makeAs("0::/user/service/open-conduit-daemon\n").ok());
}

TEST_CASE("what is left in a run's group is killed as a whole") {
  Kernel kernel;
  SECTION("by the kernel's own word for it") {
    kernel.put("second/open-conduit-r-1/agent/cgroup.kill", "");
    RunCgroups::remove({kernel.root + "/second/open-conduit-r-1/agent"});
    CHECK(kernel.get("second/open-conduit-r-1/agent/cgroup.kill") == "1");
  }
  SECTION("one by one where there is none, and numbers that are not of our namespace name nobody") {
    auto io = kj::setupAsyncIo();
    SpawnSpec spec;
    spec.program = "/bin/sleep";
    spec.arguments = {"60"};
    auto left = spawn(spec);
    kernel.put("first/open-conduit-r-1/agent/cgroup.procs", fmt::format("0\n{}\n", left.pid));
    RunCgroups::remove({kernel.root + "/first/open-conduit-r-1/agent"});
    auto end = whenEnded(io.unixEventPort, left.pidfd.get()).wait(io.waitScope);
    CHECK(end.code == SIGKILL);
  }
}

TEST_CASE("a program that is to be in a control group is in it from its first instruction, or is not started") {
  Kernel kernel;
  kernel.put("group/cgroup.procs", "");
  SpawnSpec spec;
  spec.program = "/bin/true";
  spec.controlGroups = {kernel.root + "/group"};
  auto io = kj::setupAsyncIo();
  auto spawned = spawn(spec);
  CHECK(kernel.get("group/cgroup.procs") == "0");
  CHECK(whenEnded(io.unixEventPort, spawned.pidfd.get()).wait(io.waitScope).code == 0);
  spec.controlGroups.push_back(kernel.root + "/missing");
  CHECK_THROWS(spawn(spec));
  // The kernel's refusal counts as well: a file that takes no write stands for it.
  REQUIRE(mkdir((kernel.root + "/full").c_str(), 0700) == 0);
  REQUIRE(symlink("/dev/full", (kernel.root + "/full/cgroup.procs").c_str()) == 0);
  spec.controlGroups = {kernel.root + "/full"};
  CHECK_THROWS_WITH(spawn(spec), hasText("cgroup.procs"));
}
