// open-conduit-gateway: the only way out of one run's container. See proto/gateway.capnp.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/log.h"
#include "channel.h"
#include "proto/rpc.h"
#include "server.h"
#include "surroundings.h"

namespace {

constexpr const char* help =
    "open-conduit-gateway: the only way out of one run's container.\n"
    "\n"
    "It is started by Open Conduit in a container of its own, and speaks Cap'n Proto over its standard input and\n"
    "output (proto/gateway.capnp): a policy comes in, records of connections go out. It makes proxy.sock, an HTTP\n"
    "proxy (CONNECT, and plain http:// requests), and toolbelt.sock in the folder that the policy names, and takes\n"
    "listening sockets for the same at proxy.port and toolbelt.port there, one each. When its standard input ends it\n"
    "closes every connection and exits.\n"
    "\n"
    "  --connections N    open at once; more are answered 503 (16384, or fewer where it gets too few descriptors)\n"
    "  --head-ms N        milliseconds for the head of a request to be complete (15000)\n"
    "  --dial-ms N        milliseconds for each address of a host to answer, and thrice that for all (10000)\n"
    "  --version\n"
    "\n"
    "Exit codes: 0 the channel ended, 2 wrong arguments, 1 anything else.\n";

// Descriptors that are not connections: the channel, c-ares, listeners.
constexpr size_t otherDescriptors = 128;

int64_t number(const char* text) {
  char* end;
  auto value = text == nullptr ? 0 : strtol(text, &end, 10);
  if (value <= 0 || *end != '\0') {
    fprintf(stderr, "open-conduit-gateway: an option needs a number above 0; see --help\n");
    exit(2);
  }
  return value;
}

oc::gateway::ProxyLimits readArguments(int argc, char** argv) {
  oc::gateway::ProxyLimits limits;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--help" || word == "--version") {
      fputs(word == "--help" ? help : "open-conduit-gateway " OPEN_CONDUIT_VERSION "\n", stdout);
      exit(0);
    }
    if (word == "--connections") {
      limits.connections = static_cast<size_t>(number(argv[++i]));
    } else if (word == "--head-ms") {
      limits.headMilliseconds = number(argv[++i]);
    } else if (word == "--dial-ms") {
      limits.dialMilliseconds = number(argv[++i]);
    } else {
      fprintf(stderr, "open-conduit-gateway: there is no option %s; see --help\n", argv[i]);
      exit(2);
    }
  }
  return limits;
}

void endBySignals() {
  signal(SIGPIPE, SIG_IGN);
  // As the first process of its container it would not be ended by them otherwise.
  for (int number : {SIGTERM, SIGINT, SIGHUP}) signal(number, [](int) { _exit(0); });
}

void serve(oc::gateway::ProxyLimits limits) {
  auto io = kj::setupAsyncIo();
  oc::gateway::Loop loop;
  kj::UnixEventPort::FdObserver observer(io.unixEventPort, loop.descriptor(),
                                         kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto sockets = oc::gateway::drive(loop, observer).eagerlyEvaluate(nullptr);
  oc::Connection channel(oc::gateway::standardStream(*io.lowLevelProvider), capnp::rpc::twoparty::Side::SERVER,
                         kj::heap<oc::gateway::GatewayServer>(loop, *io.lowLevelProvider, limits), oc::RpcLimits(),
                         "the shim");
  channel.onDisconnect().exclusiveJoin(kj::mv(sockets)).wait(io.waitScope);
  // Everything at once: nothing of a run may go on without its shim, and nobody waits for destructors.
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  oc::initLog("open-conduit-gateway");
  auto limits = readArguments(argc, argv);
  auto failed = kj::runCatchingExceptions([&]() {
    endBySignals();
    oc::gateway::stopForwarding();
    auto descriptors = oc::gateway::giveUpPrivileges(2 * limits.connections + 2 * limits.pipes + otherDescriptors);
    limits.pipes = std::min(limits.pipes, descriptors / 16);
    auto others = otherDescriptors + 2 * limits.pipes;
    limits.connections = std::min(limits.connections, (std::max(descriptors, others + 2) - others) / 2);
    serve(limits);
  });
  KJ_IF_MAYBE (exception, failed) oc::logError("{}", oc::describe(*exception));
  return 1;
}
