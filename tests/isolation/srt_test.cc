// What srt does not do by itself, and open-conduit-srt does for it; and that nothing of a run is left.
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "base/procfs.h"
#include "srt_world.h"

using namespace oc;
using oc::test::get;
using oc::test::isThere;
using oc::test::put;
using oc::test::SrtWorld;

namespace {

void makeProgram(const std::string& path, const std::string& script) {
  put(path, "#!/bin/sh\n" + script);
  REQUIRE(chmod(path.c_str(), 0755) == 0);
}

// Processes of this user whose command line has the text.
size_t countProcesses(const std::string& text) {
  size_t count = 0;
  for (pid_t pid : descendants(1)) {
    try {
      auto fd = openIfThere(fmt::format("/proc/{}/cmdline", pid), O_RDONLY);
      if (fd && readAll(fd->get(), 1 << 20).find(text) != std::string::npos) ++count;
    } catch (const kj::Exception&) {
      // It has ended, or is another's.
    }
  }
  return count;
}

void pause(SrtWorld& world, int milliseconds) {
  world.io.provider->getTimer().afterDelay(milliseconds * kj::MILLISECONDS).wait(world.io.waitScope);
}

}  // namespace

TEST_CASE("an agent's exit code, streams and directory are its own") {
  SrtWorld world;
  auto result = world.run("pwd; echo problem >&2; exit 7");
  CHECK(result.end.code == 7);
  CHECK(result.output == world.place.workspace + "\n");
  CHECK(result.errors == "problem\n");
}

TEST_CASE("an srt that gives up before the agent has started is tried again, and not for ever") {
  SrtWorld world;
  auto node = world.place.runFiles + "/node", count = world.place.runFiles + "/count";
  auto real = world.parts.node;
  world.parts.node = node;
  makeProgram(node, "echo x >> " + count + "; [ $(wc -l < " + count + ") -gt 2 ] && exec " + real +
                        " \"$@\"; echo busy >&2; exit 1\n");
  auto result = world.run("echo got; exit 4");
  CHECK(result.end.code == 4);
  CHECK(result.output == "got\n");
  CHECK(result.errors == "busy\nbusy\n");
  CHECK(get(count) == "x\nx\nx\n");

  makeProgram(node, "echo y >> " + count + "; exit 3\n");
  result = world.run("echo never");
  CHECK(result.end.code == 3);
  CHECK(result.output == "");
  CHECK(get(count) == "x\nx\nx\ny\ny\ny\ny\ny\n");
}

TEST_CASE("the instance has namespaces of its own, and what it lacks is said") {
  SrtWorld world;
  auto answer = world.start().sandbox().protectionsRequest().send().wait(world.io.waitScope);
  auto protections = answer.getProtections();
  CHECK(protections.getUserNamespace());
  CHECK(protections.getMountNamespace());
  CHECK(protections.getPidNamespace());
  CHECK(protections.getIpcNamespace());
  CHECK_FALSE(protections.getNetworkNamespace());
  CHECK(protections.getNoNewPrivs());
  CHECK(protections.getSeccomp());
}

TEST_CASE("2 the agent's environment does not reach srt: NODE_OPTIONS is no code outside") {
  SrtWorld world;
  put(world.place.runFiles + "/evil.js",
      fmt::format("for (const f of ['{}', '{}']) try {{ require('fs').writeFileSync(f, 'ran') }} catch {{}}",
                  world.home("marker"), world.place.runFiles + "/marker"));
  world.environment.emplace_back("NODE_OPTIONS", "--require=" + world.place.runFiles + "/evil.js");
  world.environment.emplace_back("BASH_ENV", world.place.runFiles + "/evil.sh");
  put(world.place.runFiles + "/evil.sh", "echo x > " + world.home("marker") + "\n");
  auto result = world.run("echo $NODE_OPTIONS");
  CHECK(result.output.starts_with("--require="));
  CHECK_FALSE(isThere(world.home("marker")));
  CHECK_FALSE(isThere(world.place.runFiles + "/marker"));
  // Inside it is the agent's own affair.
  world.run(shellQuote(world.parts.node) + " -e 0");
  CHECK(get(world.place.runFiles + "/marker") == "ran");
  CHECK_FALSE(isThere(world.home("marker")));
}

TEST_CASE("2 variables that are srt's own are refused") {
  SrtWorld world;
  for (auto name : {"HTTP_PROXY", "https_proxy", "ALL_PROXY"}) {
    world.start();
    auto kept = world.environment;
    world.environment.emplace_back(name, "http://127.0.0.1:1");
    CHECK(world.launch("true").reason == "sandbox_denied");
    world.environment = kept;
  }
}

TEST_CASE("3 no descriptor of ours reaches the agent") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  auto directory = openFile(world.home(".ssh"), O_RDONLY | O_DIRECTORY);
  // Where the kit closes nothing, and above.
  world.start({{directory.get(), 8}, {directory.get(), 9}});
  REQUIRE(
      world.launch("for n in /proc/self/fd/*; do echo ${n##*/}; done; cat /proc/self/fd/[3-9]*/id_ed25519").reason ==
      "");
  auto result = world.instance->wait();
  CHECK(result.output.find("key") == std::string::npos);
  CHECK(result.output.find("8\n") == std::string::npos);
  CHECK(result.output.find("9\n") == std::string::npos);
  CHECK(result.output.find("2\n") != std::string::npos);
}

TEST_CASE("4 programs that an agent planted in PATH are not run outside") {
  SrtWorld world;
  auto bin = world.place.workspace + "/bin";
  for (auto name : {"bwrap", "socat", "rg", "which", "bash", "sh", "node", "ripgrep"}) {
    makeProgram(bin + "/" + name,
                "echo ran >> " + world.home("marker") + "; echo " + name + " >> " + world.place.runFiles + "/inside\n");
  }
  world.environment[0].second = bin + ":/usr/bin:/bin";
  REQUIRE(world.environment[0].first == "PATH");
  world.start();
  REQUIRE(world.launchCommand({"rg", "x"}).reason == "");
  CHECK(world.instance->wait().end.code == 0);
  CHECK_FALSE(isThere(world.home("marker")));
  CHECK(get(world.place.runFiles + "/inside") == "rg\n");
}

TEST_CASE("5 C10 doctor's check runs a canary, and every denial of it holds") {
  SrtWorld world;
  std::vector<std::string> words = {"--"};
  for (auto& word : sandbox::srtCheckJob(world.parts, world.places)) words.push_back(word);
  test::AgentInstance instance(world.io, "open-conduit-srt", words, false);
  REQUIRE(instance.handshake.ready);
  auto answer = instance.sandbox().checkRequest().send().wait(world.io.waitScope);
  std::vector<std::string> names;
  for (auto check : answer.getReport().getChecks()) {
    INFO(toString(check.getName()) << ": " << toString(check.getWhat()));
    CHECK((check.getOk() || check.getWanted()));
    names.push_back(toString(check.getName()));
  }
  for (auto name : {"srt", "canary", "write", "read", "network", "unix sockets", "namespaces within"}) {
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
}

TEST_CASE("5 doctor's check names the part that is missing") {
  SrtWorld world;
  world.parts.socat = world.root + "/no-socat";
  std::vector<std::string> words = {"--"};
  for (auto& word : sandbox::srtCheckJob(world.parts, world.places)) words.push_back(word);
  test::AgentInstance instance(world.io, "open-conduit-srt", words, false);
  auto answer = instance.sandbox().checkRequest().send().wait(world.io.waitScope);
  auto checks = answer.getReport().getChecks();
  REQUIRE(checks.size() == 1);
  CHECK_FALSE(checks[0].getOk());
  CHECK(toString(checks[0].getFix()) == "sudo apt-get install socat");
}

TEST_CASE("6 SIGTERM asks the agent, which may end in its own time and way") {
  for (bool allSockets : {false, true}) {
    SrtWorld world;
    world.policy.allUnixSockets = allSockets;  // with and without srt's helper around the agent
    auto& instance = world.start();
    REQUIRE(world.launch("trap 'sleep 0.3; echo asked; exit 5' TERM; sleep 1000 & echo ready; wait").reason == "");
    REQUIRE(instance.waitForOutput("ready"));
    instance.signal(SIGTERM);
    auto result = instance.wait();
    CHECK(result.output == "ready\nasked\n");
    CHECK(result.end.code == 5);
  }
}

TEST_CASE("6 SIGINT, SIGHUP and SIGQUIT lift nothing") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  auto& instance = world.start();
  REQUIRE(world.launch("echo ready; sleep 1; cat ~/.ssh/id_ed25519 2>/dev/null; echo x 2>/dev/null > ~/out; echo end")
              .reason == "");
  REQUIRE(instance.waitForOutput("ready"));
  for (int number : {SIGINT, SIGHUP, SIGQUIT, SIGTERM}) ::kill(instance.serving, number);
  auto result = instance.wait();
  CHECK(result.output == "ready\nend\n");
  CHECK_FALSE(isThere(world.home("out")));
}

TEST_CASE("6 nothing of a run is left, whatever it did") {
  SrtWorld world;
  auto mark = std::to_string(getpid()) + ".25";  // sleep takes it, and nobody else has it
  auto script = "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 1" + mark + " & wait' &) ; (setsid setsid sleep 2" +
                mark + " &) ; sleep 3" + mark + " & kill -STOP $!; sleep 0.3; echo ready; ";
  SECTION("when it ends by itself") { CHECK(world.run(script + "exit 3").end.code == 3); }
  SECTION("when it is killed") {
    auto& instance = world.start();
    REQUIRE(world.launch(script + "trap '' TERM; while :; do sleep 4" + mark + "; done").reason == "");
    REQUIRE(instance.waitForOutput("ready"));
    CHECK(countProcesses(mark) >= 3);
    instance.signal(SIGKILL);
    CHECK(countProcesses(mark) == 0);
    CHECK(instance.wait().end.known);
  }
  SECTION("when its shim is gone") {
    auto& instance = world.start();
    REQUIRE(world.launch(script + "sleep 4" + mark).reason == "");
    REQUIRE(instance.waitForOutput("ready"));
    instance.process = nullptr;
    CHECK(instance.endsByItself());
  }
  SECTION("when the instance is killed") {
    auto& instance = world.start();
    REQUIRE(world.launch(script + "sleep 4" + mark).reason == "");
    REQUIRE(instance.waitForOutput("ready"));
    ::kill(instance.serving, SIGKILL);
    CHECK(instance.endsByItself());
  }
  CHECK(countProcesses(mark) == 0);
}

TEST_CASE("an agent outlives the daemon") {
  SrtWorld world;
  auto& instance = world.start();
  REQUIRE(world.launch("echo ready; sleep 1; echo done").reason == "");
  REQUIRE(instance.waitForOutput("ready"));
  instance.daemon = nullptr;
  CHECK(instance.wait().output == "ready\ndone\n");
}

TEST_CASE("7 placeholders are gone after a hard stop, too") {
  SrtWorld world;
  auto& instance = world.start();
  REQUIRE(world.launch("ls .git; echo ready; sleep 1000").reason == "");
  REQUIRE(instance.waitForOutput("ready"));
  auto git = world.place.workspace + "/.git";
  CHECK(isThere(git + "/config.worktree"));
  instance.signal(SIGKILL);
  instance.wait();
  for (auto name : {"/config.worktree", "/modules", "/worktrees"}) CHECK_FALSE(isThere(git + name));
  SrtWorld::outside("cd " + world.place.workspace + " && test -z \"$(git status --porcelain)\"");
}

TEST_CASE("9 what is hidden stays hidden when it is replaced or made during the run") {
  SrtWorld world;
  put(world.home(".docker/config.json"), "first\n");
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home("plain"), "first\n");
  world.policy.allUnixSockets = GENERATE(false, true);
  auto& instance = world.start();
  REQUIRE(world
              .launch(R"sh(
cd; echo ready; read go
cat plain .docker/config.json .ssh/id_ed25519 .aws/credentials .netrc .config/gh/hosts.yml 2>/dev/null; echo end)sh")
              .reason == "");
  REQUIRE(instance.waitForOutput("ready"));
  auto replace = [&](const std::string& name, const std::string& text) { put(world.home(name), text); };
  replace("plain", "second\n");
  replace(".docker/config.json", "second\n");  // by rename, as docker login does
  SrtWorld::outside("cd " + world.places.home + " && mv .ssh old && cp -r old .ssh");
  put(world.home(".aws/credentials"), "made\n");
  put(world.home(".netrc"), "made\n");
  put(world.home(".config/gh/hosts.yml"), "made\n");
  pause(world, 700);
  instance.agentInput->write("go\n", 3).wait(world.io.waitScope);
  auto result = instance.wait();
  CHECK(result.output == "ready\nsecond\nend\n");
}

TEST_CASE("9 a denied directory's contents written inside never reach the host") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  world.run("echo evil > ~/.ssh/authorized_keys; echo evil > ~/.ssh/id_ed25519");
  CHECK_FALSE(isThere(world.home(".ssh/authorized_keys")));
  CHECK(get(world.home(".ssh/id_ed25519")) == "key\n");
}

TEST_CASE("10 a commondir that the agent made is gone after the run") {
  SrtWorld world;
  auto git = world.place.workspace + "/.git";
  world.run(
      "mkdir evil; cp -r .git/* evil/; git --git-dir=evil config core.fsmonitor /tmp/evil; echo ../evil > .git/commondir");
  CHECK(isThere(world.place.workspace + "/evil/config"));
  CHECK_FALSE(isThere(git + "/commondir"));
  SrtWorld::outside("cd " + world.place.workspace + " && ! git config core.fsmonitor");
}

TEST_CASE("11 a datagram pair reaches no hidden socket") {
  SrtWorld world;
  auto listenAt = [](const std::string& path) {
    kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    struct sockaddr_un address {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
    return fd;
  };
  auto hidden = listenAt(world.root + "/run/notify"), plain = listenAt(world.root + "/plain");
  auto send = [](const std::string& path) {
    return "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or exit 2; "
           "send(A, \"hello\", 0, pack_sockaddr_un(\"" +
           path + "\")) or exit 1'";
  };
  auto received = [](const kj::AutoCloseFd& fd) {
    char buffer[16];
    return recv(fd.get(), buffer, sizeof(buffer), 0) == 5;
  };
  CHECK(world.tries(send(world.root + "/run/notify")) == "no");
  CHECK_FALSE(received(hidden));
  // The filter alone would not have stopped it.
  CHECK(world.tries(send(world.root + "/plain")) == "yes");
  CHECK(received(plain));
}

TEST_CASE("11 shared memory of the host is not there") {
  SrtWorld world;
  key_t key = 0x0c000000 + getpid();
  int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600);
  REQUIRE(id >= 0);
  KJ_DEFER(shmctl(id, IPC_RMID, nullptr));
  auto probe = fmt::format("perl -e 'exit(defined(shmget({}, 4096, 0600)) ? 0 : 1)'", key);
  CHECK(system(probe.c_str()) == 0);
  CHECK(world.tries(probe) == "no");
}

TEST_CASE("12 a policy that denies everything and allows back what is needed works") {
  SrtWorld world;
  put(world.home("notes"), "notes\n");
  put(world.home("allowed/file"), "allowed\n");
  world.policy.readDeny = {"/"};
  world.policy.readAllow = {"/usr", "/bin", "/lib", "/lib64", "/etc", "~/allowed"};
  auto result =
      world.run("cat ~/notes ~/allowed/file file; echo x > new; cat new; test -e " + world.root + "/run && echo seen");
  CHECK(result.output == "allowed\none\nx\n");
}

TEST_CASE("13 TMPDIR is the run's own, and srt's shared one is not writable") {
  SrtWorld world;
  // Everybody's on this machine: what is made here is taken away again, one that was there stays.
  bool made = mkdir("/tmp/claude", 0700) == 0;
  KJ_DEFER(if (made) rmdir("/tmp/claude"));
  if (made) REQUIRE(chmod("/tmp/claude", 01777) == 0);
  // Control: outside it can be written.
  SrtWorld::outside("f=$(mktemp /tmp/claude/oc-control.XXXXXX) && rm $f");
  auto result = world.run(
      "f=$(mktemp) && echo $f; touch /tmp/claude/oc 2>/dev/null && echo shared; touch /tmp/oc 2>/dev/null && echo tmp");
  CHECK(result.output.starts_with(world.place.tmp + "/"));
  CHECK(std::count(result.output.begin(), result.output.end(), '\n') == 1);
}

TEST_CASE("14 only loopback names go past the proxy, and Node is told to use it") {
  SrtWorld world;
  CHECK(world.run("echo $NO_PROXY $no_proxy $NODE_USE_ENV_PROXY").output ==
        "localhost,127.0.0.1,::1 localhost,127.0.0.1,::1 1\n");
}

TEST_CASE("15 every word of a command arrives as it is") {
  SrtWorld world;
  std::vector<std::string> words = {"printf",
                                    "%s\n",
                                    "a b",
                                    "--settings",
                                    "/dev/null",
                                    "-c",
                                    "x'y\"z",
                                    "$(id) `id` $HOME",
                                    "*",
                                    "",
                                    "line\nline",
                                    "ü\t\x01",
                                    std::string(100000, 'x')};
  std::string expected;
  for (size_t i = 2; i < words.size(); ++i) expected += words[i] + "\n";
  world.start();
  REQUIRE(world.launchCommand(words).reason == "");
  CHECK(world.instance->wait().output == expected);
}

TEST_CASE("15 a command that is too long is refused, and says so") {
  SrtWorld world;
  world.start();
  auto refusal = world.launchCommand({"true", std::string(131072, 'x')});
  CHECK(refusal.reason == "sandbox_denied");
  CHECK(refusal.what.find("131072 bytes") != std::string::npos);
  CHECK(world.launchCommand({"true", std::string(131071, 'x')}).reason == "");
  CHECK(world.instance->wait().end.code == 0);
}

TEST_CASE("no namespace can be made inside, so nothing that hides can be lifted") {
  for (bool allSockets : {false, true}) {
    SrtWorld world;
    world.policy.allUnixSockets = allSockets;
    CHECK(world.tries("unshare --user true") == "no");
    CHECK(world.tries("unshare --user --map-root-user --mount true") == "no");
    CHECK(world.tries("umount " + world.places.stateDir) == "no");
  }
}

TEST_CASE("no secret is in an argument that others can see") {
  SrtWorld world;
  world.environment.emplace_back("TOKEN", "s3cret-value-in-environment");
  auto& instance = world.start();
  REQUIRE(world.launchCommand({"sh", "-c", "echo ${TOKEN}; sleep 1000"}).reason == "");
  REQUIRE(instance.waitForOutput("s3cret-value"));
  CHECK(countProcesses("sleep") > 0);
  CHECK(countProcesses("s3cret-value") == 0);
  instance.signal(SIGKILL);
}
