// The channel to the shim: policy, records, the toolbelt's relay, and what happens when it ends.
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/procfs.h"
#include "tests/catch.h"
#include "tests/gateway_world.h"

using oc::hasText;
using oc::test::GatewayWorld;
using oc::test::sendDescriptors;
using oc::test::Wire;

namespace {

// The error that configuring gives; empty when it works.
std::string configureError(GatewayWorld& world, const GatewayWorld::PolicyText& policy) {
  std::string text;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&]() { world.configure(policy); }))
    text = oc::describe(*exception);
  return text;
}

bool isThere(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

kj::AutoCloseFd listenOnLoopback() {
  kj::AutoCloseFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(fd, 16) == 0);
  return fd;
}

// Keeps what the agent says, and passes on what the test wants said.
class Listening final : public oc::proto::ByteSink::Server {
 public:
  struct State {
    std::string heard;
    bool ended = false, dropped = false;
    kj::Maybe<kj::ForkedPromise<void>> hold;  // each write waits for it
  };
  explicit Listening(State& state) : state(state) {}
  ~Listening() noexcept { state.dropped = true; }

 protected:
  kj::Promise<void> write(WriteContext context) override {
    auto bytes = context.getParams().getBytes();
    CHECK(bytes.size() <= 65536);
    state.heard.append(bytes.asChars().begin(), bytes.size());
    KJ_IF_MAYBE (hold, state.hold) return hold->addBranch();
    return kj::READY_NOW;
  }
  kj::Promise<void> end(EndContext) override {
    state.ended = true;
    return kj::READY_NOW;
  }

 private:
  State& state;
};

struct ToolbeltWorld : GatewayWorld {
  ToolbeltWorld() {
    toolbelt = [this](oc::proto::ByteSink::Client sink) -> oc::proto::ByteSink::Client {
      toAgent = kj::mv(sink);
      return kj::heap<Listening>(state);
    };
    configure({.allow = {}, .toolbelt = true});
  }
  void sayToAgent(const std::string& text) {
    auto request = KJ_ASSERT_NONNULL(toAgent).writeRequest();
    request.setBytes(kj::arrayPtr(reinterpret_cast<const kj::byte*>(text.data()), text.size()));
    request.send().wait(io.waitScope);
  }

  Listening::State state;
  kj::Maybe<oc::proto::ByteSink::Client> toAgent;
};

}  // namespace

TEST_CASE("a policy comes once, and nothing is served before") {
  GatewayWorld world;
  CHECK_FALSE(isThere(world.directory + "/proxy.sock"));
  world.names->set("allowed.test", {"198.51.100.10"});
  world.configure({.allow = {"allowed.test"}});
  CHECK(isThere(world.directory + "/proxy.sock"));
  CHECK_FALSE(isThere(world.directory + "/toolbelt.sock"));
  CHECK_THAT(configureError(world, {.allow = {"denied.test"}}), hasText("has its policy already"));
  CHECK(world.connect("denied.test:443") == "403 not_allowed");
}

TEST_CASE("a policy that can't be read is refused whole, and its entry named") {
  struct Case {
    GatewayWorld::PolicyText policy;
    std::string named;
  };
  for (auto& [policy, named] :
       std::vector<Case>{{{.allow = {"good.test", "a/b"}}, "a/b"},
                         {{.allow = {"*"}}, "*"},
                         {{.allow = {"a.*.test"}}, "a.*.test"},
                         {{.allow = {"good.test"}, .privateRanges = {"10.0.0.1/8"}}, "10.0.0.1/8"},
                         {{.allow = {"good.test"}, .refuse = {"nowhere"}}, "nowhere"}}) {
    GatewayWorld world;
    CHECK_THAT(configureError(world, policy), hasText(named));
    CHECK_FALSE(isThere(world.directory + "/proxy.sock"));
    CHECK_FALSE(configureError(world, {.allow = {"good.test"}}).empty());
  }
}

TEST_CASE("what a server cuts off has no clean end for the client either") {
  GatewayWorld world;
  auto port = listenOnLoopback();
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  REQUIRE(getsockname(port, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  world.configure({.allow = {"198.51.100.10:443"}});
  sendDescriptors(world.dial("proxy.port").descriptor(), {port.get()});
  bool cutOff = GENERATE(true, false);
  world.tls->become([cutOff](Wire& client) {
    client.say("half");
    client.hearBytes(1);
    linger atOnce{cutOff, 0};
    setsockopt(client.descriptor(), SOL_SOCKET, SO_LINGER, &atOnce, sizeof(atOnce));
  });
  kj::AutoCloseFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  int client = fd;
  Wire wire(kj::mv(fd));
  wire.say("CONNECT 198.51.100.10:443 HTTP/1.1\r\n\r\n");
  REQUIRE(wire.hear("\r\n\r\n").find(" 200 ") != std::string::npos);
  REQUIRE(wire.hearBytes(4) == "half");
  wire.say("x");
  char byte;
  auto n = recv(client, &byte, 1, 0);
  int error = n < 0 ? errno : 0;
  CHECK(error == (cutOff ? ECONNRESET : 0));
}

TEST_CASE("B2 what becomes the gateway's port is one listening TCP socket, brought once") {
  GatewayWorld world;
  auto path = world.directory + "/proxy.port";
  auto bring = [&](const std::vector<int>& fds) {
    auto wire = world.dial("proxy.port");
    if (fds.empty()) {
      wire.say("x");
    } else {
      sendDescriptors(wire.descriptor(), fds);
    }
    return wire.hearAll();
  };
  CHECK_FALSE(isThere(path));
  world.configure({.allow = {"198.51.100.10:443"}});
  REQUIRE(isThere(path));

  auto port = listenOnLoopback();
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  REQUIRE(getsockname(port, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  auto dialed = [&]() {
    kj::AutoCloseFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    return Wire(kj::mv(fd));
  };
  kj::AutoCloseFd idle(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd datagram(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto connected = dialed();
  auto pipe = oc::makePipe();
  auto unixPair = oc::makeSocketPair();
  CHECK(bring({}) == "");
  for (int fd : {idle.get(), datagram.get(), connected.descriptor(), pipe.first.get(), unixPair.first.get()})
    CHECK(bring({fd}) == "");
  CHECK(bring({port.get(), port.get()}) == "");
  CHECK(isThere(path));

  CHECK(bring({port.get()}) == std::string(1, '\0'));
  CHECK_FALSE(isThere(path));
  auto wire = dialed();
  CHECK(world.summary(world.tunnel(wire, "198.51.100.10:443")) == "200");
  auto another = dialed();
  CHECK(world.summary(world.tunnel(another, "198.51.100.10:25")) == "403 not_allowed");
  CHECK(world.connect("198.51.100.10:443") == "200");  // and by its own socket as before
}

TEST_CASE("a gateway whose network passes packets on, and can't be kept from it, serves nothing") {
  GatewayWorld world(
      {.setUp =
           "echo 1 >/proc/sys/net/ipv4/ip_forward; mount --bind /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/ip_forward; "
           "mount -o remount,bind,ro /proc/sys/net/ipv4/ip_forward"});
  CHECK_THAT(configureError(world, {.allow = {"good.test"}}), hasText("ip_forward"));
  CHECK_FALSE(isThere(world.directory + "/proxy.sock"));
}

TEST_CASE("the control of the above: where it can be cleared, it is, and the gateway serves") {
  GatewayWorld world({.setUp = "echo 1 >/proc/sys/net/ipv4/ip_forward"});
  CHECK(configureError(world, {.allow = {"good.test"}}).empty());
}

TEST_CASE("the gateway holds no capabilities and gets no new privileges") {
  GatewayWorld world;
  world.configure({.allow = {}});
  auto status = oc::readFile(fmt::format("/proc/{}/status", world.pid), 1 << 16);
  CHECK_THAT(status, hasText("CapEff:\t0000000000000000"));
  CHECK_THAT(status, hasText("CapPrm:\t0000000000000000"));
  CHECK_THAT(status, hasText("NoNewPrivs:\t1"));
}

TEST_CASE("each attempt is told: what, where to, how much, and why not") {
  GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10"});
  world.names->set("private.test", {"10.1.2.3"});
  world.configure({.allow = {"allowed.test", "private.test"}});
  {
    auto wire = world.dial();
    world.tunnel(wire, "Allowed.test:443");
    wire.say("hello");
    wire.hearBytes(5);
  }
  auto allowed = world.toldOf("allowed.test");
  REQUIRE(allowed != nullptr);
  CHECK(allowed->allowed);
  CHECK(allowed->port == 443);
  CHECK(allowed->address == "198.51.100.10");
  CHECK(allowed->up == 5);
  CHECK(allowed->down == 5);
  CHECK(allowed->count == 1);

  for (int i = 0; i < 5; ++i) world.connect("denied.test:8080");
  world.connect("private.test:443");
  world.ask("GET / HTTP/1.1\r\n\r\n");
  auto denied = world.toldOf("denied.test");
  REQUIRE(denied != nullptr);
  CHECK_FALSE(denied->allowed);
  CHECK(denied->reason == "not_allowed");
  CHECK(denied->port == 8080);
  CHECK(denied->address == "");
  uint32_t count = 0;
  for (auto& each : world.told) count += each.host == "denied.test" ? each.count : 0;
  CHECK(count == 5);
  auto unreachable = world.toldOf("private.test");
  REQUIRE(unreachable != nullptr);
  CHECK_FALSE(unreachable->allowed);
  CHECK(unreachable->reason == "private_address");
  CHECK(unreachable->address == "10.1.2.3");
  auto malformed = world.toldOf("/");
  REQUIRE(malformed != nullptr);
  CHECK(malformed->reason == "malformed");

  auto answer = KJ_ASSERT_NONNULL(world.gateway).totalsRequest().send().wait(world.io.waitScope);
  auto totals = answer.getTotals();
  CHECK(totals.getAllowed() == 1);
  CHECK(totals.getDenied() == 7);
  CHECK(totals.getBytesUp() == 5);
  CHECK(totals.getOpen() == 0);
}

TEST_CASE("hostile names are printable and bounded when they are told") {
  GatewayWorld world;
  world.configure({.allow = {}});
  world.ask(
      "CONNECT \x1b]52;c;\x07"
      "evil:443 HTTP/1.1\r\n\r\n");
  world.ask("CONNECT " + std::string(5000, 'a') + ":443 HTTP/1.1\r\n\r\n");
  REQUIRE(world.until([&]() { return world.told.size() >= 2; }));
  for (auto& each : world.told) {
    CHECK(each.host.find('\x1b') == std::string::npos);
    CHECK(each.host.size() <= 253);
  }
}

TEST_CASE("a shim that acknowledges nothing slows the run, and loses no record") {
  GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10"});
  world.tls->become([](Wire& client) { client.hearAll(); });
  world.configure({.allow = {"198.51.100.10"}});
  // While this thread doesn't turn its loop, nothing is acknowledged.
  int served = 0;
  for (; served < 5000; ++served) {
    auto wire = world.dial();
    wire.limit(2);
    if (world.tunnel(wire, "198.51.100.10:443").empty()) break;
  }
  CHECK(served >= 1000);
  CHECK(served < 1200);
  CHECK(world.until([&]() { return world.told.size() >= static_cast<size_t>(served); }));
  CHECK(world.until([&]() { return world.connect("198.51.100.10:443") == "200"; }));
}

TEST_CASE("every refusal has been told when the totals come") {
  GatewayWorld world;
  world.configure({.allow = {}});
  for (int i = 0; i < 3; ++i) world.connect("denied.test:443");
  world.connect("other.test:443");
  auto answer = KJ_ASSERT_NONNULL(world.gateway).totalsRequest().send().wait(world.io.waitScope);
  auto totals = answer.getTotals();
  CHECK(totals.getDenied() == 4);
  uint32_t count = 0;
  for (auto& each : world.told) count += each.count;
  CHECK(count == 4);
}

TEST_CASE("resolve answers for names of the policy alone") {
  GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10", "2001:db8:1::10"});
  world.configure({.allow = {"allowed.test:443", "missing.test"}});
  auto resolve = [&](const char* name) {
    auto request = KJ_ASSERT_NONNULL(world.gateway).resolveRequest();
    request.setName(name);
    return request.send().wait(world.io.waitScope);
  };
  auto found = resolve("allowed.test");
  CHECK(found.getAddresses().size() == 2);
  CHECK(found.getError().size() == 0);
  auto missing = resolve("missing.test");
  CHECK(missing.getAddresses().size() == 0);
  CHECK(missing.getError().size() > 0);
  CHECK_THROWS(resolve("denied.test"));
  CHECK_THROWS(resolve("not a name"));
  CHECK(world.names->queriesFor("denied.test") == 0);
}

TEST_CASE("B2 the toolbelt's socket is relayed both ways, with each side's end") {
  ToolbeltWorld world;
  auto wire = world.dial("toolbelt.sock");
  // Who says nothing is no connection yet.
  world.io.provider->getTimer().afterDelay(200 * kj::MILLISECONDS).wait(world.io.waitScope);
  CHECK(world.toAgent == nullptr);
  wire.say("{\"jsonrpc\"");
  REQUIRE(world.until([&]() { return world.state.heard == "{\"jsonrpc\""; }));
  world.sayToAgent("answer");
  CHECK(wire.hearBytes(6) == "answer");
  wire.say("more");
  wire.endSaying();
  CHECK(world.until([&]() { return world.state.ended; }));
  CHECK(world.state.heard == "{\"jsonrpc\"more");
  world.sayToAgent("last");
  KJ_ASSERT_NONNULL(world.toAgent).endRequest().send().wait(world.io.waitScope);
  CHECK(wire.hearAll() == "last");
  world.toAgent = nullptr;
  CHECK(world.until([&]() { return world.state.dropped; }));
}

TEST_CASE("the toolbelt's relay is aborted when the shim drops its end, and reads no faster than the shim does") {
  ToolbeltWorld world;
  SECTION("dropped without an end") {
    auto wire = world.dial("toolbelt.sock");
    wire.say("x");
    REQUIRE(world.until([&]() { return world.toAgent != nullptr; }));
    world.toAgent = nullptr;
    CHECK(world.until([&]() { return world.state.dropped; }));
    CHECK(wire.hearAll() == "");
  }
  SECTION("held back") {
    auto hold = kj::newPromiseAndFulfiller<void>();
    world.state.hold = hold.promise.fork();
    auto wire = world.dial("toolbelt.sock");
    wire.limit(1);
    size_t said = 0;
    std::thread writer([&]() {
      std::string block(64 << 10, 'x');
      while (said < (64u << 20) && wire.say(block)) said += block.size();
    });
    for (int i = 0; i < 150; ++i)
      world.io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(world.io.waitScope);
    writer.join();
    // What may be unanswered and the socket's buffers, and not 64 MiB.
    CHECK(said < (4u << 20));
    hold.fulfiller->fulfill();
    CHECK(world.until([&]() { return world.state.heard.size() >= said; }));
  }
}

TEST_CASE("when the channel ends, everything ends at once") {
  GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10"});
  world.configure({.allow = {"allowed.test"}});
  auto tunnel = world.dial(), idle = world.dial();
  REQUIRE_THAT(world.tunnel(tunnel, "allowed.test:443"), hasText(" 200 "));
  world.gateway = nullptr;
  world.connection = nullptr;
  CHECK(tunnel.hasEnded());
  CHECK(idle.hasEnded());
  int status = 0;
  REQUIRE(waitpid(world.pid, &status, 0) == world.pid);
  world.pid = -1;
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_THROWS(world.dial());
}

TEST_CASE("a peer that speaks no Cap'n Proto, or nothing at all, ends the gateway") {
  auto program = std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/open-conduit-gateway";
  for (auto input : {"printf 'GET / HTTP/1.1\\r\\n\\r\\n................................'", "true"}) {
    auto status = system(fmt::format("{} | timeout 20 {} >/dev/null 2>&1", input, program).c_str());
    CHECK(WEXITSTATUS(status) != 124);
  }
}
