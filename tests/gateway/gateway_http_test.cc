// What the gateway makes of requests: plain ones, broken ones, and those that try to say two things.
#include <fmt/format.h>

#include <chrono>

#include "tests/catch.h"
#include "tests/gateway_world.h"

using oc::hasText;
using oc::test::GatewayWorld;
using oc::test::Wire;
using std::string_literals::operator""s;

namespace {

// Says back what it heard, head and body, as the body of an answer that would keep its connection.
void mirror(Wire& client) {
  auto head = client.hear("\r\n\r\n");
  std::string body;
  auto at = head.find("Content-Length: ");
  if (at != std::string::npos) body = client.hearBytes(std::stoul(head.substr(at + 16)));
  if (head.find("chunked") != std::string::npos) body = client.hear("0\r\n\r\n");
  auto heard = head + body;
  client.say(
      fmt::format("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\r\n{}", heard.size(), heard));
  // What more comes would be a second request.
  client.limit(1);
  auto more = client.hear("\r\n\r\n");
  if (!more.empty()) client.say("SECOND:" + more);
}

struct World : GatewayWorld {
  explicit World(oc::test::WorldOptions options = {}) : GatewayWorld(std::move(options)) {
    names->set("allowed.test", {"198.51.100.10"});
    http->become(mirror);
    configure({.allow = {"allowed.test"}});
  }
};

}  // namespace

TEST_CASE("B2 a plain request is passed on by our own head, and answered once") {
  World world;
  auto answer = world.ask(
      "GET http://allowed.test/path?q HTTP/1.1\r\nHost: allowed.test\r\nX-A: b\r\nProxy-Connection: keep-alive\r\n\r\n");
  CHECK_THAT(answer, hasText("HTTP/1.1 200 OK\r\n"));
  CHECK_THAT(answer, hasText("Connection: close\r\n"));
  CHECK_THAT(answer, !hasText("keep-alive"));
  CHECK_THAT(answer, hasText("GET /path?q HTTP/1.1\r\nHost: allowed.test\r\nX-A: b\r\nConnection: close\r\n\r\n"));
}

TEST_CASE("B2 bodies are passed on, by length and in chunks, and not a byte more") {
  World world;
  std::string second = "GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n";
  auto byLength = world.ask("POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" + second);
  CHECK_THAT(byLength, hasText("\r\n\r\nhello"));
  CHECK_THAT(byLength, !hasText("denied.test"));
  auto chunked = world.ask(
      "POST http://allowed.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + second);
  CHECK_THAT(chunked, hasText("5\r\nhello\r\n0\r\n\r\n"));
  CHECK_THAT(chunked, !hasText("denied.test"));
  auto none = world.ask("GET http://allowed.test/ HTTP/1.1\r\n\r\n" + second);
  CHECK_THAT(none, hasText("200 OK"));
  CHECK_THAT(none, !hasText("denied.test"));
  CHECK_THAT(none, !hasText("SECOND"));
  // A body that comes late, and in many pieces.
  auto wire = world.dial();
  wire.say("POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 200000\r\n\r\n");
  for (int i = 0; i < 20; ++i) wire.say(std::string(10000, 'a' + i));
  auto late = wire.hearAll();
  CHECK_THAT(late, hasText(std::string(10000, 'a' + 19)));
}

TEST_CASE("B2 a body that breaks its framing ends the connection") {
  World world;
  world.http->become([](Wire& client) { client.hearAll(); });
  auto answer = world.ask("POST http://allowed.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX");
  CHECK(GatewayWorld::summary(answer) == "400 malformed");
  CHECK_THAT(answer, hasText("refused the body of a request to allowed.test:80"));
  auto told = world.toldOf("allowed.test");
  REQUIRE(told != nullptr);
  CHECK(told->reason == "malformed");
}

TEST_CASE("B2 requests that two readers could read differently are answered 400, and reach nobody") {
  World world;
  CHECK(GatewayWorld::summary(world.ask("GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n")) == "200");
  auto before = world.http->connections.load();
  for (auto& request :
       {"GET http://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"s,
        "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nHost: evil.test\r\n\r\n"s,
        "POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"s,
        "POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhello"s,
        "POST http://allowed.test/ HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"s,
        "GET http://allowed.test/ HTTP/1.1\r\nX: a\r\n b\r\n\r\n"s,
        "GET http://allowed.test/ HTTP/1.1\nHost: allowed.test\n\n"s,
        "GET http://allowed.test/ HTTP/1.1\r\nX: a\nY: b\r\n\r\n"s, "GET http://allowed.test/\0 HTTP/1.1\r\n\r\n"s,
        "GET http://allowed.test/ HTTP/1.1\r\nX : a\r\n\r\n"s, "\r\nGET http://allowed.test/ HTTP/1.1\r\n\r\n"s,
        "GET http://user@allowed.test/ HTTP/1.1\r\n\r\n"s, "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"s,
        "GET https://allowed.test/ HTTP/1.1\r\n\r\n"s, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"s,
        "GET http://allowed.test/ HTTP/3.0\r\n\r\n"s, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n"s}) {
    INFO(request);
    CHECK(GatewayWorld::summary(world.ask(request)) == "400 malformed");
  }
  CHECK(world.http->connections == before);
}

TEST_CASE("B2 heads have limits, and slow clients a time") {
  World world({.arguments = {"--head-ms", "400"}});
  CHECK(GatewayWorld::summary(world.ask("GET http://allowed.test/ HTTP/1.1\r\nX: " + std::string(40000, 'x') +
                                        "\r\n\r\n")) == "431 malformed");
  std::string many;
  for (int i = 0; i < 200; ++i) many += "X: y\r\n";
  CHECK(GatewayWorld::summary(world.ask("GET http://allowed.test/ HTTP/1.1\r\n" + many + "\r\n")) == "431 malformed");
  // Without an end of the line, and for as long as it is let.
  CHECK(GatewayWorld::summary(world.ask("GET http://allowed.test/" + std::string(50000, 'x'))) == "431 malformed");
  {
    auto slow = world.dial();
    slow.say("CONNECT allowed.te");
    CHECK(GatewayWorld::summary(slow.hearAll()) == "408 timeout");
  }
  {
    // A byte now and then doesn't buy more time.
    auto slow = world.dial();
    std::string head = "GET http://allowed.test/ HTTP/1.1\r\nX: ";
    bool cut = !slow.say(head);
    for (int i = 0; i < 200 && !cut; ++i) usleep(50'000), cut = !slow.say("x");
    CHECK(cut);  // some time after the limit, when the answer could have been read
  }
  {
    // Who says nothing is closed without a word; and who is served has no such limit.
    auto silent = world.dial();
    CHECK(silent.hasEnded());
    auto served = world.dial();
    world.tls->become(oc::test::echo);
    CHECK_THAT(world.tunnel(served, "allowed.test:443"), hasText("200"));
    usleep(900'000);
    served.say("x");
    CHECK(served.hearBytes(1) == "x");
  }
}

TEST_CASE("B2 what is pipelined behind a refused CONNECT is not read as a request") {
  World world;
  std::string refused = "CONNECT denied.test:443 HTTP/1.1\r\n\r\n",
              second = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
  auto answer = world.ask(refused + second);
  CHECK(GatewayWorld::summary(answer) == "403 not_allowed");
  CHECK_THAT(answer, !hasText("200 OK"));
  CHECK(world.http->connections == 0);
  // However much it is, the answer arrives, and the connection ends.
  auto much = world.ask(refused + std::string(100'000, 'x'));
  CHECK(GatewayWorld::summary(much) == "403 not_allowed");
  // The control.
  CHECK_THAT(world.ask(second), hasText("200 OK"));
}

TEST_CASE("a CONNECT that has a body is refused") {
  World world;
  CHECK(GatewayWorld::summary(world.ask("CONNECT allowed.test:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")) ==
        "400 malformed");
  CHECK(GatewayWorld::summary(world.ask("CONNECT allowed.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")) ==
        "400 malformed");
  CHECK(world.tls->connections == 0);
}

TEST_CASE("a WebSocket over a plain request works once the server agrees, and not before") {
  World world;
  std::string request =
      "GET http://allowed.test/ws HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  SECTION("it agrees") {
    world.http->become([](Wire& client) {
      client.hear("\r\n\r\n");
      client.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      oc::test::echo(client);
    });
    auto wire = world.dial();
    wire.say(request + "early");
    CHECK_THAT(wire.hear("\r\n\r\n"), hasText("101 Switching"));
    CHECK(wire.hearBytes(5) == "early");
    wire.say("frames");
    CHECK(wire.hearBytes(6) == "frames");
  }
  SECTION("it does not: what follows would be a second request, for whatever host") {
    auto answer = world.ask(request + "GET / HTTP/1.1\r\nHost: denied.test\r\n\r\n");
    CHECK_THAT(answer, hasText("200 OK"));
    CHECK_THAT(answer, hasText("Upgrade: websocket"));
    CHECK_THAT(answer, !hasText("denied.test"));
  }
  SECTION("it switches though nobody asked") {
    world.http->become([](Wire& client) {
      client.hear("\r\n\r\n");
      client.say("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      client.say(client.hearAll());
    });
    CHECK_THAT(world.ask("GET http://allowed.test/ HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: denied.test\r\n\r\n"),
               !hasText("denied.test"));
  }
}

TEST_CASE("a plain request that waits for 100 Continue gets it, and its answer behind it") {
  World world;
  world.http->become([](Wire& client) {
    client.hear("\r\n\r\n");
    client.say("HTTP/1.1 100 Continue\r\n\r\n");
    auto body = client.hearBytes(5);
    client.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body);
  });
  auto wire = world.dial();
  wire.say("POST http://allowed.test/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  CHECK(wire.hear("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  wire.say("hello");
  CHECK_THAT(wire.hearAll(), hasText("\r\n\r\nhello"));
}

TEST_CASE("a server that says 1xx without end holds up nobody, and is read no faster than its client reads") {
  World world;
  std::atomic<bool> heldUp{false};
  world.http->become([&](Wire& client) {
    client.hear("\r\n\r\n");
    client.limit(1);
    std::string flood;
    for (int i = 0; i < 10'000; ++i) flood += "HTTP/1.1 100 Continue\r\n\r\n";
    while (client.say(flood)) {
    }
    heldUp = true;
  });
  auto wire = world.dial();
  wire.say("GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n");
  CHECK(wire.hear("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  CHECK(world.connect("allowed.test:443") == "200");
  CHECK(world.until([&]() { return heldUp.load(); }));
  CHECK(wire.hearBytes(1 << 20).size() == 1 << 20);
}

TEST_CASE("an answer that begins before the request has ended arrives") {
  World world;
  world.http->become([](Wire& client) {
    client.hear("\r\n\r\n");
    client.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
  });
  auto wire = world.dial();
  wire.say("POST http://allowed.test/ HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n" + std::string(1000, 'x'));
  CHECK_THAT(wire.hearAll(), hasText("413 Too Large"));
}
