#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/gateway_world.h"

using oc::hasText;
using oc::test::GatewayWorld;
using oc::test::Wire;

TEST_CASE("B2 a tunnel reaches an allowed host, and what is not allowed gets 403 and no query") {
  GatewayWorld world;
  world.names->set("allowed.test", {"198.51.100.10"});
  world.names->set("denied.test", {"198.51.100.20"});
  world.configure({.allow = {"allowed.test"}});

  auto wire = world.dial();
  CHECK(world.tunnel(wire, "allowed.test:443") == "HTTP/1.1 200 Connection established\r\n\r\n");
  wire.say("hello");
  CHECK(wire.hearBytes(5) == "hello");

  CHECK(world.connect("denied.test:443") == "403 not_allowed");
  CHECK(world.names->queriesFor("denied.test") == 0);
  CHECK(world.names->queriesFor("allowed.test") > 0);
}
