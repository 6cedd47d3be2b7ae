// open-conduit-github behind a real proxy, tinyproxy, which it reaches GitHub by CONNECT through.
#include <set>

#include "github_fixture.h"
#include "providers/github/job.h"
#include "providers/github/profile.h"
#include "providers/kit/kit.h"

namespace oc {
namespace {

using test::FakeGitHub;
using test::GitHubInstance;

bool hasTinyproxy() { return test::shell("command -v tinyproxy").code == 0; }

#define NEEDS_PROXY() \
  if (!test::hasNode() || !hasTinyproxy()) OC_SKIP("node, openssl or tinyproxy is missing")

// A port of this machine's that nobody has.
uint16_t freePort() {
  kj::AutoCloseFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_in address {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  socklen_t length = sizeof(address);
  REQUIRE(getsockname(fd.get(), reinterpret_cast<struct sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

class Proxy {
 public:
  Proxy(const std::string& directory, const std::string& more) : log(directory + "/tinyproxy.log"), port(freePort()) {
    auto config = directory + "/tinyproxy.conf";
    writeFileAtomically(config,
                        "Port " + std::to_string(port) +
                            "\nListen 127.0.0.1\nTimeout 60\nMaxClients 32\nLogLevel Connect\nLogFile \"" + log +
                            "\"\n" + more,
                        0644);
    SpawnSpec spec;
    spec.program = test::shell("command -v tinyproxy").output;
    spec.arguments = {"-d", "-c", config};
    process = spawn(spec);
    for (int i = 0; i < 500 && test::shell("nc -z 127.0.0.1 " + std::to_string(port)).code != 0; ++i) usleep(10'000);
  }
  ~Proxy() {
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }
  size_t tunnelsTo(const std::string& host) {
    auto text = readFile(log, 16 << 20), line = "CONNECT " + host;
    size_t count = 0;
    for (size_t at = 0; (at = text.find(line, at)) != text.npos; ++at) ++count;
    return count;
  }

  std::string log;
  uint16_t port;

 private:
  Spawned process{0, nullptr};
};

// This process's, for the supervisor to pass on.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name); }
  KJ_DISALLOW_COPY(Variable);

 private:
  const char* name;
};

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FakeGitHub fake;
  uint64_t issue;
  World() {
    fake.furnish();
    issue = fake.issue();
  }
  // One call, by an instance that is given these variables.
  GitHubInstance::Called read(std::vector<std::string> passEnv) {
    GitHubInstance github(io, fake, {}, std::move(passEnv));
    REQUIRE(github.signIn(fake.pem()).reason.empty());
    return github.call("github.issue.get", Json::object(), issue, fake.repoId);
  }
};

TEST_CASE("E1 GitHub is reached through the proxy of the environment, where the operator passes it on") {
  NEEDS_PROXY();
  World world;
  Proxy proxy(world.fake.directory, "Allow 127.0.0.1\n");
  Variable variable("HTTPS_PROXY", "http://127.0.0.1:" + std::to_string(proxy.port));
  CHECK_FALSE(world.read({}).isError);
  CHECK(proxy.tunnelsTo(world.fake.host()) == 0);
  CHECK_FALSE(world.read({"HTTPS_PROXY"}).isError);
  CHECK(proxy.tunnelsTo(world.fake.host()) > 0);
  // What is excepted goes by itself.
  Variable exception("NO_PROXY", "localhost");
  auto before = proxy.tunnelsTo(world.fake.host());
  CHECK_FALSE(world.read({"HTTPS_PROXY", "NO_PROXY"}).isError);
  CHECK(proxy.tunnelsTo(world.fake.host()) == before);
}

TEST_CASE("E1 a proxy that asks for a password gets it, and refusals of the proxy's are told without it") {
  NEEDS_PROXY();
  World world;
  Proxy proxy(world.fake.directory, "Allow 127.0.0.1\nBasicAuth conduit hunter2\n");
  auto at = "@127.0.0.1:" + std::to_string(proxy.port);
  {
    Variable variable("HTTPS_PROXY", "http://conduit:hunter2" + at);
    CHECK_FALSE(world.read({"HTTPS_PROXY"}).isError);
  }
  Variable variable("HTTPS_PROXY", "http://conduit:hunter3" + at);
  auto answer = world.read({"HTTPS_PROXY"});
  CHECK(answer.isError);
  CHECK(answer.error() == "github_unavailable");
  // Which of the two a wrong password gets differs between proxies.
  CHECK_THAT(answer.message(), (hasText("407") || hasText("401")) && !hasText("hunter3"));
}

TEST_CASE("E1 a proxy that is not there, or does not want, is told as the trouble; no call goes around it") {
  NEEDS_PROXY();
  World world;
  world.fake.control({{"op", "forget"}});
  {
    Variable variable("HTTPS_PROXY", "http://127.0.0.1:" + std::to_string(freePort()));
    auto answer = world.read({"HTTPS_PROXY"});
    CHECK(answer.error() == "github_unavailable");
    CHECK_THAT(answer.message(), hasText("127.0.0.1"));
  }
  Proxy proxy(world.fake.directory, "Allow 127.0.0.1\nConnectPort 1\n");
  Variable variable("HTTPS_PROXY", "http://127.0.0.1:" + std::to_string(proxy.port));
  auto answer = world.read({"HTTPS_PROXY"});
  CHECK(answer.error() == "github_unavailable");
  CHECK_THAT(answer.message(), hasText("403"));
  CHECK(world.fake.control({{"op", "requests"}}).empty());
}

TEST_CASE("E1 with a proxy, the profile opens its port in the place of the API's") {
  auto ports = [](const char* proxy, const char* exceptions) {
    Variable one("HTTPS_PROXY", proxy), two("NO_PROXY", exceptions);
    auto open =
        github::profileOf(github::parseJob({"connection", "--api", "https://github.example/api/v3"})).connectPorts;
    return std::set<uint16_t>(open.begin(), open.end());
  };
  CHECK(ports("", "") == std::set<uint16_t>{53, 443});
  CHECK(ports("http://proxy.example:3128", "") == std::set<uint16_t>{53, 3128});
  CHECK(ports("http://proxy.example:3128", "*.internal") == std::set<uint16_t>{53, 443, 3128});
  // The password is none of the message's.
  Variable bad("HTTPS_PROXY", "http://me:hunter2@bad host");
  std::string message;
  try {
    github::parseJob({"connection", "--api", "https://github.example/api/v3"});
  } catch (const kit::UsageError& error) {
    message = error.message;
  }
  CHECK_THAT(message, hasText("HTTPS_PROXY") && !hasText("hunter2"));
}

}  // namespace
}  // namespace oc
