// What must keep working through a tunnel.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <chrono>

#include "base/procfs.h"
#include "tests/catch.h"
#include "tests/gateway_world.h"

using oc::hasText;
using oc::test::GatewayWorld;
using oc::test::Wire;

namespace {

struct World : GatewayWorld {
  explicit World(oc::test::WorldOptions options = {}) : GatewayWorld(std::move(options)) {
    names->set("allowed.test", {"198.51.100.10"});
    configure({.allow = {"allowed.test", "198.51.100.10"}});
  }
};

// 0 with a sanitizer, whose own memory is most of it.
size_t residentKilobytes([[maybe_unused]] pid_t pid) {
#ifdef OPEN_CONDUIT_SANITIZED
  return 0;
#else
  auto status = oc::readFile(fmt::format("/proc/{}/status", pid), 1 << 16);
  auto at = status.find("VmRSS:");
  return at == std::string::npos ? 0 : std::stoul(status.substr(at + 6));
#endif
}

size_t openDescriptors(pid_t pid) {
  auto status = oc::readFile(fmt::format("/proc/{}/status", pid), 1 << 16);
  auto at = status.find("FDSize:");
  return at == std::string::npos ? 0 : std::stoul(status.substr(at + 7));
}

// As many as this process may have.
size_t allDescriptors() {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_max;
}

std::string pattern(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 1;
  for (auto& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

}  // namespace

TEST_CASE("a ClientHello in the CONNECT's own segment reaches the server") {
  World world;
  auto wire = world.dial();
  wire.say("CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n\x16\x03\x01hello");
  CHECK(wire.hear("\r\n\r\n") == "HTTP/1.1 200 Connection established\r\n\r\n");
  CHECK(wire.hearBytes(8) == "\x16\x03\x01hello");
}

TEST_CASE("each side may end what it says and go on listening") {
  World world;
  SECTION("the client") {
    world.tls->become([](Wire& client) {
      auto all = client.hearAll();
      client.say("heard " + all);
    });
    auto wire = world.dial();
    world.tunnel(wire, "allowed.test:443");
    wire.say("everything");
    wire.endSaying();
    CHECK(wire.hearAll() == "heard everything");
  }
  SECTION("the server") {
    std::string heard;
    world.tls->become([&heard](Wire& client) {
      client.say("bye");
      client.endSaying();
      heard = client.hearAll();
    });
    auto wire = world.dial();
    world.tunnel(wire, "allowed.test:443");
    CHECK(wire.hearAll() == "bye");
    usleep(100'000);
    CHECK(wire.say("still here"));
    wire.close();
    auto told = world.toldOf("allowed.test");
    REQUIRE(told != nullptr);
    CHECK(told->up == 10);
    CHECK(told->down == 3);
    world.tls = nullptr;
    CHECK(heard == "still here");
  }
}

TEST_CASE("a server that is silent for long is not cut off, nor one that says a little now and then") {
  World world({.arguments = {"--head-ms", "200", "--dial-ms", "200"}});
  world.tls->become([](Wire& client) {
    client.hear("\n");
    for (int i = 0; i < 3; ++i) {
      // Five times as long as any of the gateway's limits: no timer is running any more.
      usleep(1'000'000);
      client.say(fmt::format("data: {}\n\n", i));
    }
  });
  auto wire = world.dial();
  world.tunnel(wire, "allowed.test:443");
  wire.say("GET /events\n");
  CHECK(wire.hearAll() == "data: 0\n\ndata: 1\n\ndata: 2\n\n");
}

TEST_CASE("large transfers arrive whole, both ways at once, and to readers that are slow") {
  World world;
  auto bytes = pattern(32 << 20);
  auto wire = world.dial();
  world.tunnel(wire, "allowed.test:443");
  std::thread sender([&]() {
    wire.say(bytes);
    wire.endSaying();
  });
  std::string heard;
  char buffer[100'000];
  for (ssize_t n; (n = recv(wire.descriptor(), buffer, sizeof(buffer), 0)) > 0;) {
    heard.append(buffer, n);
    if (heard.size() < (2 << 20)) usleep(1000);
  }
  sender.join();
  CHECK(heard.size() == bytes.size());
  CHECK(heard == bytes);
  wire.close();
  auto told = world.toldOf("allowed.test");
  REQUIRE(told != nullptr);
  CHECK(told->up == bytes.size());
  CHECK(told->down == bytes.size());
  CHECK(told->reason == "");
}

TEST_CASE("a busy tunnel leaves others their turn, and the channel, too") {
  World world;
  world.tls->become([](Wire& client) {
    if (client.hearBytes(1) == "e") return client.say("e"), oc::test::echo(client);
    std::string block(1 << 20, 'x');
    while (client.say(block)) {
    }
  });
  auto busy = world.dial();
  world.tunnel(busy, "allowed.test:443");
  busy.say("b");
  std::atomic<bool> stop{false};
  std::thread reader([&]() {
    char buffer[1 << 16];
    while (!stop && recv(busy.descriptor(), buffer, sizeof(buffer), 0) > 0) {
    }
    busy.close();
  });
  for (int i = 0; i < 20; ++i) {
    auto wire = world.dial();
    world.tunnel(wire, "allowed.test:443");
    wire.say("e");
    CHECK(wire.hearBytes(1) == "e");
    auto totals = KJ_ASSERT_NONNULL(world.gateway).totalsRequest().send().wait(world.io.waitScope);
    CHECK(totals.getTotals().getAllowed() >= 2);
  }
  stop = true;
  reader.join();
}

TEST_CASE("a client that goes away takes its server's connection with it, and a server its client's") {
  World world;
  std::atomic<int> ended{0};
  world.tls->become([&ended](Wire& client) {
    client.hearAll();
    ++ended;
  });
  {
    auto wire = world.dial();
    world.tunnel(wire, "allowed.test:443");
  }
  CHECK(world.until([&]() { return ended == 1; }));
  world.tls->become([](Wire& client) { client.hearBytes(1); });
  auto wire = world.dial();
  world.tunnel(wire, "allowed.test:443");
  wire.say("xy");
  CHECK(wire.hearAll() == "");
}

TEST_CASE("thousands of tunnels are open at once and each is its own") {
  // The server's ends are in this process, too.
  size_t wanted = std::min<size_t>(3000, (allDescriptors() - 200) / 4);
  World world;
  std::vector<Wire> wires;
  for (size_t i = 0; i < 100; ++i) wires.push_back(world.dial());
  for (auto& wire : wires) wire.say("CONNECT 198.51.100.10:443 HTTP/1.1\r\n\r\n");
  for (auto& wire : wires) REQUIRE(wire.hear("\r\n\r\n").find(" 200 ") != std::string::npos);
  auto atHundred = residentKilobytes(world.pid);
  CHECK(atHundred < 6 * 1024);
  while (wires.size() < wanted) {
    wires.push_back(world.dial());
    auto& wire = wires.back();
    wire.say("CONNECT 198.51.100.10:443 HTTP/1.1\r\n\r\n");
    REQUIRE(wire.hear("\r\n\r\n").find(" 200 ") != std::string::npos);
  }
  for (size_t i = 0; i < wires.size(); ++i) wires[i].say(fmt::format("{:08}", i));
  size_t right = 0;
  for (size_t i = 0; i < wires.size(); ++i) right += wires[i].hearBytes(8) == fmt::format("{:08}", i);
  CHECK(right == wanted);
  auto totals = KJ_ASSERT_NONNULL(world.gateway).totalsRequest().send().wait(world.io.waitScope);
  CHECK(totals.getTotals().getOpen() == wanted);
  WARN(fmt::format("{} tunnels: {} KiB resident; 100: {} KiB", wanted, residentKilobytes(world.pid), atHundred));
}

TEST_CASE("more connections than the limit are answered 503, and others go on") {
  World world({.arguments = {"--connections", "20"}});
  std::vector<Wire> wires;
  for (int i = 0; i < 20; ++i) {
    wires.push_back(world.dial());
    REQUIRE_THAT(world.tunnel(wires.back(), "allowed.test:443"), hasText(" 200 "));
  }
  CHECK(world.connect("allowed.test:443") == "503 too_many");
  wires[3].say("x");
  CHECK(wires[3].hearBytes(1) == "x");
  wires.pop_back();
  CHECK(world.until([&]() { return world.connect("allowed.test:443") == "200"; }));
}

TEST_CASE("long heads that are not complete take no more memory than a gateway has, and short requests go on") {
  size_t wanted = std::min<size_t>(4000, allDescriptors() - 200);
  World world;
  std::vector<Wire> wires;
  auto head = "GET http://allowed.test/ HTTP/1.1\r\nX: " + std::string(30'000, 'x');
  for (size_t i = 0; i < wanted; ++i) {
    wires.push_back(world.dial());
    wires.back().say(head);
  }
  CHECK(world.connect("allowed.test:443") == "200");
  CHECK(residentKilobytes(world.pid) < 110'000);
  CHECK(GatewayWorld::summary(wires.back().hear("\r\n\r\n")) == "503 too_many");
  wires.front().say("\r\n\r\n");
  CHECK_THAT(wires.front().hear("\r\n\r\n"), hasText("GET / HTTP/1.1"));  // echoed
}

TEST_CASE("the more connections there are, the less waits in the kernel for a client that does not read") {
  allDescriptors();
  World world;
  std::atomic<bool> heldUp{false};
  world.tls->become([&](Wire& client) {
    client.limit(1);
    while (client.say(std::string(1 << 20, 'x'))) {
    }
    heldUp = true;
  });
  auto waiting = [&]() {
    heldUp = false;
    auto wire = world.dial();
    CHECK(GatewayWorld::summary(world.tunnel(wire, "allowed.test:443")) == "200");
    CHECK(world.until([&]() { return heldUp.load(); }));
    int bytes = 0;
    CHECK(ioctl(wire.descriptor(), FIONREAD, &bytes) == 0);
    return bytes;
  };
  auto alone = waiting();
  std::vector<Wire> others;
  for (int i = 0; i < 300; ++i) others.push_back(world.dial());
  auto few = waiting();
  CHECK(few > 0);
  CHECK(few < alone / 2);
}

TEST_CASE("a refusal arrives whole however many connections there are") {
  size_t wanted = std::min<size_t>(2100, allDescriptors() - 200);
  GatewayWorld world;
  GatewayWorld::PolicyText policy;
  for (int i = 0; i < 20; ++i) policy.allow.push_back(fmt::format("{:045}.{:063}.{:063}.{:063}.test", i, i, i, i));
  world.configure(policy);
  std::vector<Wire> others;
  for (size_t i = 0; i < wanted; ++i) others.push_back(world.dial());
  auto wire = world.dial();
  auto head = world.tunnel(wire, "denied.test:443");
  CHECK(GatewayWorld::summary(head) == "403 not_allowed");
  auto at = head.find("Content-Length: ");
  REQUIRE(at != std::string::npos);
  auto body = wire.hearAll();
  CHECK(body.size() > 5000);
  CHECK(body.size() == std::stoul(head.substr(at + 16)));
}

TEST_CASE("tunnels whose clients do not read use up no descriptors that others need, and lose nothing") {
  size_t stalled = std::min<size_t>(500, (allDescriptors() - 200) / 4);
  World world({.arguments = {"--connections", std::to_string(stalled + 1)}});
  world.tls->become([](Wire& client) {
    client.limit(600);
    oc::test::echo(client);
  });
  auto bytes = pattern(300'000);
  std::vector<Wire> wires;
  size_t opened = 0, said = 0, right = 0;
  for (size_t i = 0; i < stalled; ++i) {
    wires.push_back(world.dial());
    opened += GatewayWorld::summary(world.tunnel(wires.back(), "allowed.test:443")) == "200";
    said += wires.back().say(bytes);
  }
  CHECK(opened == stalled);
  CHECK(said == stalled);
  CHECK(world.connect("allowed.test:443") == "200");
  for (auto& wire : wires) {
    wire.endSaying();
    right += wire.hearAll() == bytes;
    wire.close();
  }
  CHECK(right == stalled);
}

TEST_CASE("many requests leave nothing behind") {
  World world;
  world.tls->become([](Wire& client) { client.hearAll(); });
  auto open = [&]() {
    return KJ_ASSERT_NONNULL(world.gateway).totalsRequest().send().wait(world.io.waitScope).getTotals().getOpen();
  };
  auto round = [&](int count) {
    for (int i = 0; i < count; ++i) {
      world.connect(i % 3 == 0 ? "denied.test:443" : "198.51.100.10:443");
      // Records are acknowledged only while this thread listens.
      if (i % 20 == 0) open();
    }
    world.until([&]() { return open() == 0; });
  };
  round(1000);
  auto before = residentKilobytes(world.pid);
  round(3000);
  auto after = residentKilobytes(world.pid);
  INFO(before << " KiB, then " << after);
  CHECK(after < before + 256);
  CHECK(openDescriptors(world.pid) <= 256);
}
