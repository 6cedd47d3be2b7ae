// The life of a run's containers on a real engine.
#include <capnp/serialize.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "gateway.capnp.h"
#include "world.h"

namespace oc::test {
namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/oc-docker-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { removeTree(path); }
};

void addMount(proto::RunSpec::Builder spec, const std::string& path, bool writable) {
  auto mount = spec.initMounts(1)[0];
  mount.setSource(toText(path));
  mount.setTarget(toText(path));
  mount.setWritable(writable);
}

void withNetwork(proto::RunSpec::Builder spec) { spec.setNetwork(true); }

}  // namespace

TEST_CASE("A3 an engine tells what it is") {
  World world;
  auto task = world.task();
  auto answer = task.docker().engineRequest().send().wait(world.io.waitScope);
  REQUIRE(read(answer.getRefusal()).reason == "");
  auto engine = answer.getEngine();
  auto info = ask("/info");
  CHECK(toString(engine.getId()) == info["ID"].get<std::string>());
  CHECK(toString(engine.getVersion()) == info["ServerVersion"].get<std::string>());
  CHECK(toString(engine.getOs()) == "linux");
  CHECK(toString(engine.getOperatingSystem()) == info["OperatingSystem"].get<std::string>());
  CHECK(engine.getCanLimitPids() == info["PidsLimit"].get<bool>());
}

TEST_CASE("B1 a run has a container of its own, whose streams and exit code are told exactly") {
  World world;
  auto ran = world.runToEnd("echo out; echo err >&2; pwd; id -u; exit 7");
  REQUIRE(ran.refusal.what == "");
  CHECK(ran.streams.output == fmt::format("out\n/\n{}\n", getuid()));
  CHECK(ran.streams.errors == "err\n");
  CHECK(ran.end.known);
  CHECK_FALSE(ran.end.signaled);
  CHECK(ran.end.code == 7);
  CHECK(thingsOf(world.owner).empty());
}

TEST_CASE("an agent that a signal ends is reported so") {
  World world;
  // The first process of a pid namespace is killed by nobody inside it: its child is, and the shell passes that on.
  auto ran = world.runToEnd("sh -c 'kill -USR1 $$'; exit $?");
  CHECK(ran.end.signaled);
  CHECK(ran.end.code == SIGUSR1);
}

TEST_CASE("SIGTERM asks the container's first process; SIGKILL returns when nothing of it is left") {
  World world;
  for (bool kill : {false, true}) {
    auto instance = world.run();
    REQUIRE(world.create(instance, "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.1; done").reason ==
            "");
    AttachedStream agent(world.io, kj::mv(instance.agentFd));
    REQUIRE(world.start(instance).reason == "");
    REQUIRE(agent.waitForOutput("ready"));
    instance.signal(kill ? SIGKILL : SIGTERM);
    if (kill) CHECK(ask("/containers/" + world.agentId + "/json")["State"]["Running"] == false);
    auto end = instance.wait();
    CHECK(end.signaled == kill);
    CHECK(end.code == (kill ? SIGKILL : 5));
    CHECK(agent.readToEnd().output == (kill ? "ready\n" : "ready\nasked\n"));
    CHECK(world.remove(instance).left.empty());
  }
  CHECK(thingsOf(world.owner).empty());
}

TEST_CASE("B4 the container's settings, as the engine has them") {
  World world;
  Folder folder;
  auto instance = world.run();
  auto refusal = world.create(instance, "true", [&](proto::RunSpec::Builder spec) {
    addMount(spec, folder.path, false);
    spec.setNetwork(true);
    spec.setMemoryBytes(64u << 20);
    spec.setNanoCpus(500000000);
  });
  REQUIRE(refusal.what == "");
  auto agent = ask("/containers/" + world.agentId + "/json"), gateway = ask("/containers/" + world.gatewayId + "/json");
  for (auto* container : {&agent, &gateway}) {
    auto host = (*container)["HostConfig"];
    CHECK(host["CapDrop"] == Json::array({"ALL"}));
    CHECK(host["CapAdd"].is_null());
    CHECK(host["SecurityOpt"] == Json::array({"no-new-privileges=true", "seccomp=builtin"}));
    CHECK(host["ReadonlyRootfs"] == true);
    CHECK(host["Privileged"] == false);
    CHECK(host["IpcMode"] == "private");
    CHECK(host["CgroupnsMode"] == "private");
    CHECK(host["PidMode"] == "");
    CHECK(host["UsernsMode"] == "");
    CHECK(host["LogConfig"]["Type"] == "none");
    CHECK(host["AutoRemove"] == false);
    CHECK(host["Init"] == false);
    CHECK(host["Devices"].empty());
    CHECK(host["Binds"].is_null());
    CHECK(host["RestartPolicy"]["Name"] == "no");
    CHECK(host["Memory"] == host["MemorySwap"]);
    auto config = (*container)["Config"];
    CHECK(config["OpenStdin"] == true);
    CHECK(config["StdinOnce"] == true);
    CHECK(config["User"] == fmt::format("{}:{}", getuid(), getgid()));
    CHECK(config["Labels"]["io.openconduit.plan"] == std::string(64, 'a'));
  }
  auto host = agent["HostConfig"];
  CHECK(host["NetworkMode"] == "none");
  CHECK(agent["NetworkSettings"]["Networks"].size() == 1);
  CHECK(host["PidsLimit"] == 4096);
  CHECK(host["Memory"] == 64u << 20);
  CHECK(host["NanoCpus"] == 500000000);
  CHECK_THAT(host["Tmpfs"]["/tmp"].get<std::string>(),
             hasText("exec") && hasText("nosuid") && hasText("size=67108864"));
  auto bind = host["Mounts"][0];
  CHECK(bind["ReadOnly"] == true);
  CHECK(bind["BindOptions"] ==
        Json({{"Propagation", "rprivate"}, {"NonRecursive", true}, {"ReadOnlyForceRecursive", true}}));
  CHECK(host["Mounts"][1]["Target"] == "/open-conduit/gateway");
  CHECK(host["Mounts"][1]["ReadOnly"] == true);
  CHECK(gateway["HostConfig"]["NetworkMode"] == "open-conduit-egress-" + world.owner);
  CHECK(gateway["HostConfig"]["Sysctls"]["net.ipv4.ip_forward"] == "0");
  CHECK(gateway["HostConfig"]["Mounts"].size() == 1);
  auto network = ask("/networks/open-conduit-egress-" + world.owner);
  CHECK(network["Options"]["com.docker.network.bridge.enable_icc"] == "false");
  CHECK(network["EnableIPv6"] == false);
}

TEST_CASE("B4 the container's settings, as they are inside") {
  World world;
  Folder folder, other;
  writeFileAtomically(folder.path + "/file", "content", 0644);
  auto script = fmt::format(
      "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; ulimit -n; ulimit -c; "
      "touch /etc/x /x 2>/dev/null && echo ROOT-WRITABLE; "
      "cp /bin/busybox /tmp/busybox && /tmp/busybox echo tmp-executes; "
      "cat {0}/file; touch {0}/new 2>/dev/null && echo READ-ONLY-WRITABLE; ls {1} 2>/dev/null; "
      "mknod /tmp/d c 1 3 2>/dev/null && echo DEVICE; mount -t tmpfs none /tmp 2>/dev/null && echo MOUNTED; "
      "echo 1 2>/dev/null >/proc/sys/kernel/core_pattern && echo SYSCTL; "
      "ls /sys/class/net | tr '\\n' ' '; hostname; ls /open-conduit 2>&1",
      folder.path, other.path);
  auto ran = world.runToEnd(script, [&](proto::RunSpec::Builder spec) { addMount(spec, folder.path, false); });
  REQUIRE(ran.refusal.what == "");
  auto none = "0000000000000000\n";
  CHECK(ran.streams.output ==
        fmt::format("CapInh:\t{0}CapPrm:\t{0}CapEff:\t{0}CapBnd:\t{0}CapAmb:\t{0}NoNewPrivs:\t1\nSeccomp:\t2\n"
                    "16384\n0\ntmp-executes\ncontentlo agent\nls: /open-conduit: No such file or directory\n",
                    none));
  // Their positive control: on a writable mount, the same is possible.
  auto control = world.runToEnd(fmt::format("touch {0}/new && stat -c %u {0}/new", folder.path),
                                [&](proto::RunSpec::Builder spec) { addMount(spec, folder.path, true); });
  CHECK(control.streams.output == fmt::format("{}\n", getuid()));
  struct stat stats;
  REQUIRE(stat((folder.path + "/new").c_str(), &stats) == 0);
  CHECK(stats.st_uid == getuid());
}

// A container as somebody would start it who has not thought of it, and what it prints.
std::string outputOfPlain(const std::string& image, const std::string& command, const std::string& owner) {
  auto body = Json{{"Image", image},
                   {"Cmd", {"/bin/sh", "-c", command}},
                   {"User", std::to_string(getuid())},
                   {"Labels", {{"io.openconduit.owner", owner}}}};
  auto made = parseJson(api("/containers/create", "-H 'Content-Type: application/json' -d '" + body.dump() + "'"));
  auto id = made["Id"].get<std::string>();
  api("/containers/" + id + "/start", "-X POST");
  api("/containers/" + id + "/wait", "-X POST");
  return api("/containers/" + id + "/logs?stdout=1").substr(8);  // behind the frame's header
}

TEST_CASE("B4 a program with the setuid bit gains nothing; elsewhere it does") {
  World world;
  auto image = imageId(variable("OPEN_CONDUIT_TEST_DEBIAN_IMAGE"));
  auto ran = world.runToEnd("setuid-id -u", [&](proto::RunSpec::Builder spec) { spec.setImage(toText(image)); });
  CHECK(ran.refusal.what == "");
  CHECK(ran.streams.output == fmt::format("{}\n", getuid()));
  CHECK(outputOfPlain(image, "setuid-id -u", world.owner) == "0\n");
}

TEST_CASE("the run's volume is the gateway's to write and the agent's to connect to") {
  World world;
  auto instance = world.run();
  // The fake gateway is a shell with standard input as its script.
  REQUIRE(world
              .create(instance,
                      "while ! test -e /open-conduit/gateway/ready; do sleep 0.05; done; "
                      "touch /open-conduit/gateway/x 2>&1; rm /open-conduit/gateway/ready 2>&1; "
                      "mount | grep open-conduit/gateway; cat /open-conduit/gateway/ready",
                      withNetwork)
              .what == "");
  AttachedStream agent(world.io, kj::mv(instance.agentFd)), gateway(world.io, kj::mv(instance.gatewayFd));
  REQUIRE(world.start(instance).what == "");
  gateway.write("cat /proc/sys/net/ipv4/ip_forward; echo made >/open-conduit/gateway/ready; echo done\n");
  REQUIRE(gateway.waitForOutput("done"));
  CHECK(gateway.streams.output == "0\ndone\n");
  auto output = agent.readToEnd().output;
  CHECK_THAT(output, hasText("touch: /open-conduit/gateway/x: Read-only file system"));
  CHECK_THAT(output, hasText("rm: can't remove '/open-conduit/gateway/ready': Read-only file system"));
  CHECK_THAT(output, hasText("size=256k") && hasText("noexec") && hasText("nosuid"));
  CHECK(output.ends_with("made\n"));
  // StdinOnce: a gateway whose stream is closed gets its end.
  gateway.end();
  gateway.readToEnd();
  CHECK(world.remove(instance).left.empty());
  CHECK(thingsOf(world.owner) == std::vector<std::string>{"network open-conduit-egress-" + world.owner});
  auto task = world.task();
  CHECK(world.sweep(task).removed == 1);
  CHECK(thingsOf(world.owner).empty());
}

TEST_CASE("an attached stream carries each byte as it is, both ways, and its end") {
  World world;
  auto instance = world.run();
  REQUIRE(world.create(instance, "cat; echo end >&2").reason == "");
  AttachedStream agent(world.io, kj::mv(instance.agentFd));
  REQUIRE(world.start(instance).reason == "");
  std::string bytes;
  for (size_t i = 0; i < (1u << 20); ++i) bytes.push_back(static_cast<char>((i * 2654435761u) >> 13));
  agent.write(bytes);
  agent.end();
  auto streams = agent.readToEnd();
  CHECK(streams.output == bytes);
  CHECK(streams.errors == "end\n");
  CHECK(instance.wait().code == 0);
}

TEST_CASE("B17 a container with a terminal of its own") {
  World world;
  auto instance = world.run();
  REQUIRE(world
              .create(instance, "test -t 0 && test -t 1 && read line && echo got $line",
                      [](proto::RunSpec::Builder spec) {
                        spec.setTty(true);
                        spec.setRole("attach");
                      })
              .reason == "");
  AttachedStream agent(world.io, kj::mv(instance.agentFd), true);
  REQUIRE(world.start(instance).reason == "");
  agent.write("hello\n");
  CHECK_THAT(agent.readToEnd().output, hasText("got hello\r\n"));
  CHECK(instance.wait().code == 0);
}

TEST_CASE("B4 a fork bomb ends at the process limit, and a memory hog at the memory limit") {
  World world;
  auto bomb = world.runToEnd("i=0; while test $i -lt 60; do sleep 5 & i=$((i+1)); done 2>/dev/null; echo reached $i",
                             [](proto::RunSpec::Builder spec) { spec.setPids(20); });
  CHECK(bomb.streams.output.find("reached 60") == std::string::npos);
  auto fine = world.runToEnd("i=0; while test $i -lt 60; do sleep 0.1 & i=$((i+1)); done; echo reached $i",
                             [](proto::RunSpec::Builder spec) { spec.setPids(200); });
  CHECK(fine.streams.output == "reached 60\n");

  auto instance = world.run();
  REQUIRE(world
              .create(instance, "dd if=/dev/zero of=/tmp/big bs=1M count=200",
                      [](proto::RunSpec::Builder spec) { spec.setMemoryBytes(32u << 20); })
              .reason == "");
  AttachedStream agent(world.io, kj::mv(instance.agentFd));
  REQUIRE(world.start(instance).reason == "");
  auto end = instance.wait();
  CHECK((end.signaled || end.code != 0));
  auto request = instance.docker().inspectRequest();
  request.setOwner(toText(world.owner));
  request.setRun("r-1");
  auto answer = request.send().wait(world.io.waitScope);
  REQUIRE(answer.getContainers().size() == 1);
  auto container = answer.getContainers()[0];
  CHECK_FALSE(container.getRunning());
  CHECK(toString(container.getPlanSha256()) == std::string(64, 'a'));
  CHECK(toString(container.getImageId()) == world.probe);
  CHECK(container.getStartedAt() > 1000000000);
  // /tmp ends at the limit as well, and not each kernel's killing is told to the engine: whichever comes first.
  bool killed = container.getOutOfMemory() || (end.signaled && end.code == SIGKILL);
  CHECK((killed || agent.readToEnd().errors.find("No space left") != std::string::npos));
  auto roomy = world.runToEnd("dd if=/dev/zero of=/tmp/big bs=1M count=200 2>/dev/null && echo written",
                              [](proto::RunSpec::Builder spec) { spec.setMemoryBytes(512u << 20); });
  CHECK(roomy.streams.output == "written\n");
}

TEST_CASE("what cannot be made or started is refused by its reason, and nothing is left") {
  World world;
  Folder folder;
  auto missing =
      world.runToEnd("true", [&](proto::RunSpec::Builder spec) { addMount(spec, folder.path + "/none", false); });
  CHECK(missing.refusal.reason == "sandbox_denied");
  CHECK_THAT(missing.refusal.what, hasText(folder.path + "/none"));
  auto noProgram = world.runToEnd("", [&](proto::RunSpec::Builder spec) { spec.initCommand(1).set(0, "/bin/none"); });
  CHECK(noProgram.refusal.reason == "sandbox_unavailable");
  CHECK_THAT(noProgram.refusal.what, hasText("/bin/none"));
  auto noGateway = world.runToEnd("true", [&](proto::RunSpec::Builder spec) {
    spec.setNetwork(true);
    spec.setGatewayImage(toText("sha256:" + std::string(64, '0')));
  });
  CHECK(noGateway.refusal.reason == "sandbox_unavailable");
  CHECK_THAT(noGateway.refusal.what, hasText("the gateway's container") && hasText("No such image"));
  // The gateway's own start fails: its image has no program.
  auto badGateway = world.runToEnd("true", [&](proto::RunSpec::Builder spec) {
    spec.setNetwork(true);
    spec.setGatewayImage(toText(imageId(variable("OPEN_CONDUIT_TEST_BROKEN_IMAGE"))));
  });
  CHECK(badGateway.refusal.reason == "sandbox_unavailable");
  CHECK_THAT(badGateway.refusal.what, hasText("start the gateway"));
  auto left = thingsOf(world.owner);
  CHECK(left == std::vector<std::string>{"network open-conduit-egress-" + world.owner});
}

TEST_CASE("an egress network that is not as ours are is refused") {
  World world;
  auto name = "open-conduit-egress-" + world.owner;
  api("/networks/create", fmt::format("-X POST -H 'Content-Type: application/json' -d "
                                      "'{{\"Name\":\"{}\",\"Labels\":{{\"io.openconduit.owner\":\"{}\"}}}}'",
                                      name, world.owner));
  auto ran = world.runToEnd("true", withNetwork);
  CHECK(ran.refusal.reason == "sandbox_unavailable");
  CHECK_THAT(ran.refusal.what, hasText(name));
  CHECK_THAT(ran.refusal.fix, hasText("docker network rm " + name));
}

TEST_CASE("B13 what is inspected has no secret, since none is ever given") {
  World world;
  auto instance = world.run();
  REQUIRE(world
              .create(instance, "read line; echo $line",
                      [](proto::RunSpec::Builder spec) {
                        auto variable = spec.initEnvironment(1)[0];
                        variable.setName("PLAIN");
                        variable.setValue("visible-value");
                      })
              .reason == "");
  AttachedStream agent(world.io, kj::mv(instance.agentFd));
  REQUIRE(world.start(instance).reason == "");
  agent.write("planted-secret\n");
  agent.end();
  CHECK(agent.readToEnd().output == "planted-secret\n");
  auto inspected = api("/containers/" + world.agentId + "/json");
  CHECK_THAT(inspected, hasText("visible-value"));
  CHECK(inspected.find("planted-secret") == std::string::npos);
  CHECK(api("/containers/" + world.agentId + "/logs?stdout=1").find("planted-secret") == std::string::npos);
}

TEST_CASE(
    "B1 B8 images: by digest and by id; a tag, one that is not there and one for another architecture are refused") {
  World world;
  auto task = world.task();
  auto look = [&](const std::string& reference) {
    auto request = task.docker().imageRequest();
    request.setReference(toText(reference));
    return request.send().wait(world.io.waitScope);
  };
  auto reference = variable("OPEN_CONDUIT_TEST_PROBE_IMAGE");
  auto at = reference.find('@');
  for (auto& good : {reference, reference.substr(0, at) + ":any" + reference.substr(at), world.probe}) {
    auto answer = look(good);
    CHECK(read(answer.getRefusal()).what == "");
    CHECK(answer.getFound());
    CHECK(toString(answer.getImage().getId()) == world.probe);
    CHECK(answer.getImage().getRepoDigests().size() >= 1);
  }
  for (auto& bad : {reference.substr(0, at), reference.substr(0, at) + ":latest",
                    std::string("../x@sha256:") + std::string(64, 'a'), std::string()}) {
    CHECK(read(look(bad).getRefusal()).reason == "sandbox_config");
  }
  auto absent = reference.substr(0, at) + "@sha256:" + std::string(64, '1');
  auto answer = look(absent);
  CHECK(read(answer.getRefusal()).reason == "");
  CHECK_FALSE(answer.getFound());
  auto other = read(look(imageId(variable("OPEN_CONDUIT_TEST_FOREIGN_IMAGE"))).getRefusal());
  CHECK(other.reason == "sandbox_unavailable");
  CHECK_THAT(other.what, hasText("linux/s390x"));

  auto pull = task.docker().pullRequest();
  pull.setReference(toText(absent));
  auto refused = read(pull.send().wait(world.io.waitScope).getRefusal());
  CHECK(refused.reason == "sandbox_unavailable");
  CHECK(refused.fix == "docker pull " + shellQuote(absent));
  auto again = task.docker().pullRequest();
  again.setReference(toText(reference));
  CHECK(read(again.send().wait(world.io.waitScope).getRefusal()).what == "");
}

namespace {

struct Checked {
  Refusal refusal;
  int exitCode;
  std::string output;
};

Checked check(World& world, const std::string& script,
              const std::function<void(proto::RunSpec::Builder)>& change = nullptr) {
  auto task = world.task(3);
  auto request = task.docker().checkRequest();
  auto spec = request.initSpec();
  world.fill(spec, script);
  spec.setRole("check");
  spec.setStdin(false);
  spec.setNetwork(true);
  spec.setGatewayImage(toText(variable("OPEN_CONDUIT_GATEWAY_IMAGE")));
  capnp::MallocMessageBuilder message;
  auto policy = message.initRoot<proto::GatewayPolicy>();
  policy.setSocketDirectory("/open-conduit/gateway");
  spec.setGatewayPolicy(capnp::messageToFlatArray(message).asBytes());
  if (change) change(spec);
  auto answer = request.send().wait(world.io.waitScope);
  return {read(answer.getRefusal()), answer.getExitCode(), toString(answer.getOutput())};
}

}  // namespace

TEST_CASE("B18 a check starts a container like a run's with its gateway, and leaves nothing") {
  World world;
  auto network = "network open-conduit-egress-" + world.owner;
  auto checked = check(world,
                       "cd /open-conduit/gateway; while ! test -S proxy.sock; do sleep 0.05; done; echo found; "
                       "yes 0123456789 | head -c 100000; exit 3");
  CHECK(checked.refusal.what == "");
  CHECK(checked.exitCode == 3);
  CHECK(checked.output.substr(0, 17) == "found\n0123456789\n");
  CHECK(checked.output.size() == 65536);
  CHECK(thingsOf(world.owner) == std::vector<std::string>{network});

  auto noGateway =
      check(world, "true", [&](proto::RunSpec::Builder spec) { spec.setGatewayImage(toText(world.probe)); });
  CHECK(noGateway.refusal.reason == "sandbox_unavailable");
  CHECK_THAT(noGateway.refusal.what, hasText("gateway"));
  auto noImage = check(world, "true", [&](proto::RunSpec::Builder spec) {
    spec.setGatewayImage(toText("sha256:" + std::string(64, '0')));
  });
  CHECK_THAT(noImage.refusal.what, hasText("No such image"));
  CHECK(thingsOf(world.owner) == std::vector<std::string>{network});
}

}  // namespace oc::test
