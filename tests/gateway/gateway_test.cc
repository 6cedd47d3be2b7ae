// Where the gateway lets a run connect to, on a made-up internet where every address has a server behind it.
#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/gateway_world.h"

using oc::hasText;
using oc::test::GatewayWorld;

TEST_CASE("B2 a tunnel reaches an allowed host, and what is not allowed gets 403 and no query") {
  GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10"});
  world.names->set("denied.test", {"198.51.100.20"});
  world.configure({.allow = {"allowed.test"}});

  auto wire = world.dial();
  CHECK(world.tunnel(wire, "allowed.test:443") == "HTTP/1.1 200 Connection established\r\n\r\n");
  wire.say("hello");
  CHECK(wire.hearBytes(5) == "hello");
  CHECK(world.names->queriesFor("allowed.test") > 0);

  auto before = world.names->queries();
  CHECK(world.connect("denied.test:443") == "403 not_allowed");
  CHECK(world.connect("198.51.100.20:443") == "403 not_allowed");
  CHECK(GatewayWorld::summary(world.ask("GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")) ==
        "403 not_allowed");
  CHECK(world.names->queriesFor("denied.test") == 0);
  CHECK(world.names->queries() == before);
  CHECK(world.until([&]() { return world.tls->connections == 1; }));
  CHECK(world.http->connections == 0);
}

TEST_CASE("B3 host:port opens that port only, host any port, and *.domain what is under it") {
  GatewayWorld world;
  for (auto name : {"one.test", "any.test", "under.test", "a.under.test", "b.a.under.test"})
    world.names->set(name, {"198.51.100.10"});
  world.configure({.allow = {"one.test:443", "any.test", "*.under.test"}});
  CHECK(world.connect("one.test:443") == "200");
  CHECK(world.connect("one.test:80") == "403 not_allowed");
  CHECK(world.connect("any.test:443") == "200");
  CHECK(world.connect("any.test:80") == "200");
  CHECK(world.connect("ANY.Test.:80") == "200");
  CHECK(world.connect("a.under.test:443") == "200");
  CHECK(world.connect("b.a.under.test:443") == "200");
  CHECK(world.connect("under.test:443") == "403 not_allowed");
  CHECK(world.connect("aunder.test:443") == "403 not_allowed");
}

TEST_CASE("B2 an allowed name that resolves to an address that is not public is refused, though a server is there") {
  GatewayWorld world;
  const std::vector<std::string> refused = {"10.1.2.3",        "172.20.0.9",          "192.168.7.7", "169.254.169.254",
                                            "100.64.0.1",      "198.18.0.1",          "192.0.0.8",   "240.0.0.9",
                                            "fd00:5::5",       "64:ff9b::c633:640a",  "127.0.0.1",   "::1",
                                            "2002:a01:203::1", "::ffff:198.51.100.10"};
  for (size_t i = 0; i < refused.size(); ++i) world.names->set(fmt::format("n{}.test", i), {refused[i]});
  world.names->set("public.test", {"198.51.100.10"});
  world.names->set("public6.test", {"2001:db8:1::10"});
  world.names->set("mixed.test", {"10.1.2.3", "198.51.100.10"});
  world.configure({.allow = {"*.test", "10.1.2.3", "169.254.169.254:443"}});
  // The controls: names with public addresses, and literal addresses that the operator listed.
  CHECK(world.connect("public.test:443") == "200");
  CHECK(world.connect("public6.test:443") == "200");
  CHECK(world.connect("10.1.2.3:443") == "200");
  CHECK(world.connect("169.254.169.254:443") == "200");
  const int reached = 4;
  REQUIRE(world.until([&]() { return world.tls->connections == reached; }));
  for (size_t i = 0; i < refused.size(); ++i) {
    INFO(refused[i]);
    CHECK(world.connect(fmt::format("n{}.test:443", i)) == "403 private_address");
  }
  CHECK(world.connect("169.254.169.254:80") == "403 not_allowed");
  CHECK(world.tls->connections == reached);
  // Of several addresses, only those that pass are dialed.
  CHECK(world.connect("mixed.test:443") == "200");
  CHECK(world.until([&]() { return world.tls->connections == reached + 1; }));
  auto told = world.toldOf("mixed.test");
  REQUIRE(told != nullptr);
  CHECK(told->address == "198.51.100.10");
}

TEST_CASE("B2 network.private lets names reach its ranges and no other") {
  GatewayWorld world;
  world.names->set("in.test", {"10.1.2.3"});
  world.names->set("in6.test", {"fd00:5::5"});
  world.names->set("out.test", {"172.20.0.9"});
  world.names->set("own.test", {"10.77.0.1"});
  world.configure({.allow = {"*.test"}, .privateRanges = {"10.0.0.0/8", "fd00:5::/32"}});
  CHECK(world.connect("in.test:443") == "200");
  CHECK(world.connect("in6.test:443") == "200");
  CHECK(world.connect("out.test:443") == "403 private_address");
  CHECK(world.connect("own.test:443") == "403 own_network");
}

TEST_CASE("B2 the gateway itself, its neighbours, and the machine's own addresses are never dialed") {
  GatewayWorld world;
  world.names->set("neighbour.test", {"10.77.0.1"});
  world.names->set("neighbour6.test", {"fd77::1"});
  world.names->set("itself.test", {"10.77.0.2"});
  world.names->set("machine.test", {"203.0.113.5"});
  world.names->set("public.test", {"198.51.100.10"});
  auto networks =
      world.configure({.allow = {"*.test", "10.77.0.1", "10.77.0.2", "127.0.0.1", "203.0.113.5", "[fd77::1]"},
                       .refuse = {"203.0.113.5"}});
  CHECK(std::count(networks.begin(), networks.end(), "10.77.0.0/24") == 1);
  CHECK(std::count(networks.begin(), networks.end(), "fd77::/64") == 1);
  CHECK(world.connect("public.test:443") == "200");
  const int reached = 1;
  REQUIRE(world.until([&]() { return world.tls->connections == reached; }));
  for (auto target : {"neighbour.test:443", "neighbour6.test:443", "itself.test:443", "machine.test:443",
                      "10.77.0.1:443", "10.77.0.2:80", "[fd77::1]:443", "203.0.113.5:443"}) {
    INFO(target);
    CHECK(world.connect(target) == "403 own_network");
  }
  CHECK(world.connect("127.0.0.1:443") == "403 private_address");
  CHECK(world.tls->connections == reached);
}

TEST_CASE("the control of the above: without the entry in `refuse`, that address is reached") {
  GatewayWorld world;
  world.names->set("machine.test", {"203.0.113.5"});
  world.configure({.allow = {"*.test"}});
  CHECK(world.connect("machine.test:443") == "200");
}

TEST_CASE("B2 addresses in other forms and names that only look allowed are refused, and nothing is asked") {
  GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10"});
  world.names->set("a.under.test", {"198.51.100.10"});
  world.configure({.allow = {"allowed.test", "*.under.test", "198.51.100.10"}});
  CHECK(world.connect("allowed.test:443") == "200");
  CHECK(world.connect("198.51.100.10:443") == "200");
  auto before = world.names->queries();
  for (auto target : {"3325256714:443",
                      "0xc633640a:443",
                      "0306.063.0144.012:443",
                      "198.51.25610:443",
                      "[::ffff:198.51.100.10]:443",
                      "[64:ff9b::c633:640a]:443",
                      "[2002:c633:640a::1]:443",
                      "[2001:0:c633:640a::1]:443",
                      "allowed.test.evil:443",
                      "evilallowed.test:443",
                      "allowed.test@evil:443",
                      "evil@allowed.test:443",
                      "allowed%2etest:443",
                      "allowed..test:443",
                      "*.under.test:443",
                      ".under.test:443",
                      "2130706433:80",
                      "127.1:80",
                      "0:80",
                      "[::]:80",
                      "0.0.0.0:80",
                      "[::1]:80",
                      "localhost:80",
                      "\xC3\xA4.under.test:443"}) {
    INFO(target);
    auto result = world.connect(target);
    CHECK((result == "403 not_allowed" || result == "400 malformed"));
  }
  using std::string_literals::operator""s;
  CHECK(GatewayWorld::summary(world.ask("CONNECT allowed.test\0.evil:443 HTTP/1.1\r\n\r\n"s)) == "400 malformed");
  CHECK(world.names->queries() == before);
}

TEST_CASE("B2 a name whose address changes between two requests is judged by the new one") {
  GatewayWorld world;
  world.names->set("changing.test", {"198.51.100.10"});
  world.configure({.allow = {"changing.test"}});
  CHECK(world.connect("changing.test:443") == "200");
  world.names->set("changing.test", {"10.1.2.3"});
  CHECK(world.connect("changing.test:443") == "403 private_address");
  world.names->set("changing.test", {"198.51.100.20"});
  CHECK(world.connect("changing.test:443") == "200");
}

TEST_CASE("a name is asked for again while a connection to it is being dialed") {
  // An address that is silent: nobody has that link address.
  GatewayWorld world(
      {.setUp = "PATH=$PATH:/usr/sbin:/sbin; ip neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev gw0 nud permanent && "
                "ip route add 198.51.101.1 via 10.77.0.9"});
  world.names->set("slow.test", {"198.51.101.1"});
  world.configure({.allow = {"slow.test"}});
  auto dialing = world.dial();
  dialing.say("CONNECT slow.test:443 HTTP/1.1\r\nHost: slow.test:443\r\n\r\n");
  CHECK(world.until([&]() { return world.names->queriesFor("slow.test") > 0; }));
  // Answered with it, or after it.
  auto request = KJ_ASSERT_NONNULL(world.gateway).resolveRequest();
  request.setName("slow.test");
  CHECK(request.send().wait(world.io.waitScope).getAddresses().size() == 1);
  world.names->set("slow.test", {"198.51.100.10"});
  CHECK(world.connect("slow.test:443") == "200");
}

TEST_CASE("what can't be reached is told apart from what is refused") {
  GatewayWorld world({.arguments = {"--dial-ms", "300"}});
  world.names->set("closed.test", {"198.51.100.10"});
  world.names->set("nobody.test", {"198.51.101.1"});
  world.names->set("empty.test", {});
  // The first address doesn't answer, the second does.
  world.names->set("second.test", {"198.51.101.1", "198.51.100.10"});
  // So many don't that the one which would is not waited for.
  std::vector<std::string> nine;
  for (int i = 1; i <= 8; ++i) nine.push_back("198.51.100.20" + std::to_string(i));
  nine.push_back("198.51.100.10");
  world.names->set("ninth.test", nine);
  world.configure({.allow = {"*.test"}});
  CHECK(world.connect("closed.test:81") == "502 unreachable");
  CHECK(world.connect("missing.test:443") == "502 no_such_name");
  CHECK(world.connect("empty.test:443") == "502 no_such_name");
  auto nobody = world.connect("nobody.test:443");
  CHECK((nobody == "504 timeout" || nobody == "502 unreachable"));
  CHECK(world.connect("second.test:443") == "200");
  CHECK(world.connect("ninth.test:443") == "504 timeout");
}

TEST_CASE("B2 each refusal can be read by a person") {
  GatewayWorld world;
  world.names->set("private.test", {"10.1.2.3"});
  world.configure({.allow = {"private.test", "other.test:443"}});
  auto refused = world.ask("CONNECT registry.test:443 HTTP/1.1\r\n\r\n");
  CHECK_THAT(refused, hasText("refused registry.test:443"));
  CHECK_THAT(refused, hasText("network.allow has: private.test, other.test:443"));
  CHECK_THAT(refused, hasText("add \"registry.test:443\" to its network.allow"));
  auto resolved = world.ask("CONNECT private.test:443 HTTP/1.1\r\n\r\n");
  CHECK_THAT(resolved, hasText("private.test resolves to 10.1.2.3"));
  CHECK_THAT(resolved, hasText("add \"10.1.2.3/32\" or its network to network.private"));
}
