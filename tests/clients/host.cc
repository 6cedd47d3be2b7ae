// A run's toolbelt without a run: the shim's own server, with the operations that a conformance tool asks for.
//
//   toolbelt-host SOCKET     serves until it is killed; the token is 32 bytes of 0x5a
#include <stdio.h>

#include "tests/toolbelt_world.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  oc::test::ToolbeltWorld world({{"test_simple_text"}, {"test_error_handling"}, {"conduit.work.get"}, {"test.do"}});
  auto address = world.io.provider->getNetwork().parseAddress(kj::str("unix:", argv[1])).wait(world.io.waitScope);
  world.server->listen(address->listen());
  kj::Promise<void>(kj::NEVER_DONE).wait(world.io.waitScope);
}
