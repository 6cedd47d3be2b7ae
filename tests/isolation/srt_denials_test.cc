// What srt refused and can tell, with the real srt: it is fetched as the shim does.
#include "srt_world.h"

using namespace oc;
using oc::test::SrtWorld;

namespace {

struct Told {
  std::string kind, what, why;
};

std::vector<Told> denialsAfter(SrtWorld& world, uint32_t seen) {
  auto request = world.instance->shim().denialsRequest();
  request.setSeen(seen);
  std::vector<Told> result;
  auto answer = request.send().wait(world.io.waitScope);
  for (auto denial : answer.getDenials()) {
    result.push_back({toString(denial.getKind()), toString(denial.getWhat()), toString(denial.getWhy())});
  }
  return result;
}

constexpr auto ask = R"sh(
for host in "$@"; do curl -sS -m 20 -o /dev/null "$host" 2>/dev/null; done
)sh";

std::string asking(const std::string& hosts) { return std::string("set -- ") + hosts + "\n" + ask; }

}  // namespace

TEST_CASE("F2 a host that srt refuses is told, once, with its port and the reason; one that it allows is not") {
  SrtWorld world;
  std::string why;
  world.policy.networkAllow = {*parseHostPattern("allowed.example.org", why)};
  world.run(
      asking("https://refused.example.org/ http://refused.example.org/ https://refused.example.org/ "
             "http://refused.example.org:8080/ https://allowed.example.org/ https://[2001:db8::1]/"));
  auto told = denialsAfter(world, 0);
  std::vector<std::string> whats;
  for (auto& denial : told) {
    CHECK(denial.kind == "host");
    CHECK(denial.why == "not_allowed");
    whats.push_back(denial.what);
  }
  CHECK(whats == std::vector<std::string>{"refused.example.org:443", "refused.example.org:80",
                                          "refused.example.org:8080", "[2001:db8::1]:443"});
  CHECK(denialsAfter(world, whats.size()).empty());
}

TEST_CASE("F2 denials are told while the agent still runs") {
  SrtWorld world;
  world.start();
  REQUIRE(world.launch(asking("http://refused.example.org/") + "echo asked; read line").reason.empty());
  auto told = denialsAfter(world, 0);
  REQUIRE(told.size() == 1);
  CHECK(told[0].what == "refused.example.org:80");
  world.instance->signal(SIGKILL);
}

TEST_CASE("F2 an agent can neither invent denials nor drown them") {
  SrtWorld world;
  auto script = std::string(R"sh(
ls -l /proc/self/fd /proc/$PPID/fd
env
printf 'host\tinvented.example.org:1\tnot_allowed\n' >&2
printf 'host\tinvented.example.org:1\tnot_allowed\n' >&3
printf '[SandboxDebug] Connection blocked to invented.example.org:1\n' >&2
)sh") + asking("http://first.example.org/ $(seq -f 'http://h%g.example.org/' 200)");
  auto result = world.run(script);
  auto told = denialsAfter(world, 0);
  INFO(result.output);
  CHECK(result.output.find("pipe:") != std::string::npos);  // its own streams
  REQUIRE(told.size() == 64);
  CHECK(told[0].what == "first.example.org:80");
  CHECK(told[63].what == "h63.example.org:80");
}
