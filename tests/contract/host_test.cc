#include <fmt/format.h>
#include <signal.h>

#include "base/procfs.h"
#include "tests/agent_instance.h"
#include "tests/catch.h"

using oc::test::AgentInstance;

namespace {

const std::vector<std::pair<std::string, std::string>> environment = {{"PATH", "/usr/bin:/bin"},
                                                                      {"GREETING", "hello $x"}};

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  AgentInstance instance{io, "open-conduit-host", {"--"}};

  oc::test::AgentEnd run(const std::string& script) {
    REQUIRE(instance.launch({"sh", "-c", script}, environment, "/tmp").reason == "");
    return instance.wait();
  }
};

bool isAlive(pid_t pid) {
  auto status = oc::readProcessStatus(pid);
  return status && status->state != 'Z';
}

}  // namespace

TEST_CASE(
    "A1 without a sandbox the agent runs as the operator, with exactly the environment and directory it was given") {
  World world;
  auto result = world.run("pwd; id -u; env | sort; exit 7");
  CHECK(result.end.known);
  CHECK_FALSE(result.end.signaled);
  CHECK(result.end.code == 7);
  CHECK(result.output.find(fmt::format("/tmp\n{}\n", geteuid())) == 0);
  CHECK(result.output.find("GREETING=hello $x\n") != std::string::npos);
  // Nothing of the instance's own environment.
  CHECK(result.output.find("LC_ALL") == std::string::npos);
}

TEST_CASE("the agent's streams are its own, and no other descriptor reaches it") {
  World world;
  REQUIRE(world.instance.launch({"sh", "-c", "cat; echo problem >&2; ls /proc/self/fd"}, environment, "/").reason ==
          "");
  auto text = std::string("input without an end of line");
  world.instance.agentInput->write(text.data(), text.size()).wait(world.io.waitScope);
  world.instance.agentInput = nullptr;
  auto result = world.instance.wait();
  // 3 is the directory that ls itself reads.
  CHECK(result.output == text + "0\n1\n2\n3\n");
  CHECK(result.errors == "problem\n");
}

TEST_CASE("an agent that a signal ends is reported so") {
  World world;
  auto result = world.run("kill -USR1 $$");
  CHECK(result.end.signaled);
  CHECK(result.end.code == SIGUSR1);
}

TEST_CASE("SIGTERM asks every process of the agent") {
  World world;
  auto script = "trap 'echo asked; exit 5' TERM; sleep 1000 & echo ready; wait";
  REQUIRE(world.instance.launch({"sh", "-c", script}, environment, "/").reason == "");
  REQUIRE(world.instance.waitForOutput("ready"));
  world.instance.signal(SIGTERM);
  auto result = world.instance.wait();
  CHECK(result.output == "ready\nasked\n");
  CHECK(result.end.code == 5);
}

TEST_CASE(
    "nothing of the agent is left: double forks, sessions of their own, ignored signals, stopped and forking processes") {
  World world;
  auto script =
      "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000 & echo $! $$; wait' &) ; "
      "(setsid setsid sh -c '(sleep 1000 & echo $!) & wait' &) ; "
      "sleep 1000 & kill -STOP $!; echo $!; "
      "sh -c 'while :; do sleep 0.01 & done' & echo $!; sleep 0.5; echo end";
  REQUIRE(world.instance.launch({"sh", "-c", script}, environment, "/").reason == "");
  auto result = world.instance.wait();
  std::vector<pid_t> pids;
  for (size_t at = 0; at < result.output.size();) {
    auto end = result.output.find_first_of(" \n", at);
    if (isdigit(result.output[at])) pids.push_back(atoi(result.output.c_str() + at));
    at = end + 1;
  }
  REQUIRE(pids.size() >= 5);
  for (auto pid : pids) CHECK_FALSE(isAlive(pid));
  CHECK(oc::descendants(world.instance.serving).empty());
}

TEST_CASE("SIGKILL returns when the whole tree is gone") {
  World world;
  auto script =
      "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' &); while :; do sleep 1; done";
  REQUIRE(world.instance.launch({"sh", "-c", script}, environment, "/").reason == "");
  REQUIRE(world.instance.waitForOutput("\n"));
  auto pid = atoi(world.instance.outputText.c_str());
  REQUIRE(isAlive(pid));
  world.instance.signal(SIGKILL);
  CHECK_FALSE(isAlive(pid));
  auto result = world.instance.wait();
  CHECK(result.end.signaled);
  CHECK(result.end.code == SIGKILL);
}

TEST_CASE("only SIGTERM and SIGKILL can be sent") {
  World world;
  REQUIRE(world.instance.launch({"sleep", "1000"}, environment, "/").reason == "");
  for (int number : {SIGINT, SIGHUP, SIGQUIT, 0, -1, 1000}) CHECK_THROWS(world.instance.signal(number));
  world.instance.signal(SIGTERM);
  CHECK(world.instance.wait().end.code == SIGTERM);
}

TEST_CASE("an instance launches once") {
  World world;
  REQUIRE(world.instance.launch({"true"}, environment, "/").reason == "");
  CHECK_THROWS(world.instance.launch({"true"}, environment, "/"));
}

TEST_CASE("what cannot be started is refused, and nothing was started") {
  World world;
  CHECK(world.instance.launch({"no-such-program-anywhere"}, environment, "/").reason == "sandbox_unavailable");
  CHECK(world.instance.launch({"true"}, environment, "/no/such/directory").reason == "sandbox_unavailable");
  CHECK(world.instance.launch({}, environment, "/").reason == "sandbox_denied");
  CHECK(world.instance.launch({"true"}, environment, "relative").reason == "sandbox_denied");
  CHECK(oc::descendants(world.instance.serving).empty());
  CHECK(world.instance.launch({"true"}, environment, "/").reason == "");
}

TEST_CASE("a run that was stopped before its agent was started does not start") {
  World world;
  world.instance.signal(SIGTERM);
  CHECK(world.instance.launch({"true"}, environment, "/").reason == "sandbox_unavailable");
}

TEST_CASE("an agent outlives the daemon, and ends with its shim") {
  World world;
  REQUIRE(world.instance.launch({"sh", "-c", "echo $$; sleep 1000"}, environment, "/").reason == "");
  REQUIRE(world.instance.waitForOutput("\n"));
  auto pid = atoi(world.instance.outputText.c_str());
  world.instance.daemon = nullptr;
  world.io.provider->getTimer().afterDelay(300 * kj::MILLISECONDS).wait(world.io.waitScope);
  CHECK(isAlive(pid));
  world.instance.process = nullptr;
  CHECK(world.instance.endsByItself());
  CHECK_FALSE(isAlive(pid));
}

TEST_CASE("an instance ends with the daemon that never launched anything, and with a shim that went before") {
  for (bool shimFirst : {false, true}) {
    World world;
    (shimFirst ? world.instance.process : world.instance.daemon) = nullptr;
    CHECK(world.instance.endsByItself());
  }
}

TEST_CASE("the instance is locked down as far as an agent that runs as the operator allows") {
  World world;
  auto answer = world.instance.sandbox().protectionsRequest().send().wait(world.io.waitScope);
  auto protections = answer.getProtections();
  CHECK(protections.getNoNewPrivs());
  CHECK(protections.getNotDumpable());
  CHECK(protections.getSeccomp());
  CHECK_FALSE(protections.getLandlockFiles());
  CHECK_FALSE(protections.getMountNamespace());
}
