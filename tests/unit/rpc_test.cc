// What a hostile peer cannot do to a connection.
#include "proto/rpc.h"

#include <capnp/serialize-async.h>

#include "common.capnp.h"
#include "proto/convert.h"
#include <capnp/rpc-twoparty.h>

#include "tests/catch.h"

namespace oc {
namespace {

class Silent final : public proto::Instance::Server {
 public:
  kj::Promise<void> protections(ProtectionsContext) override {
    ++calls;
    return kj::NEVER_DONE;
  }
  int calls = 0;
};

struct Ends {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::TwoWayPipe pipe = kj::newTwoWayPipe();
};

TEST_CASE("G3 a peer that sends more than it may is cut off") {
  Ends ends;
  auto limits = instanceLimits();
  limits.totalBytes = 4096;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Silent>(), limits, "peer");
  // Bootstraps are not counted by flow control.
  capnp::TwoPartyClient theirs(*ends.pipe.ends[1]);
  std::vector<capnp::Capability::Client> flood;
  for (int i = 0; i < 1000; ++i) flood.push_back(theirs.bootstrap());
  ours.onDisconnect().wait(ends.io.waitScope);
  CHECK_THAT(ours.violation(), hasText("4096"));
}

TEST_CASE("G2 asking a peer that is gone fails, and nothing else does") {
  Ends ends;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::CLIENT, nullptr, instanceLimits(), "peer");
  ends.pipe.ends[1] = nullptr;
  ours.onDisconnect().wait(ends.io.waitScope);
  for (int i = 0; i < 2; ++i) {
    auto peer = ours.bootstrapOfPeer().castAs<proto::Instance>();
    auto asked = peer.protectionsRequest().send().ignoreResult();
    CHECK_THROWS_AS(asked.wait(ends.io.waitScope), kj::Exception);
  }
}

TEST_CASE("G3 calls that are not answered stop being read") {
  Ends ends;
  auto limits = instanceLimits();
  limits.flowWords = 64;
  auto server = kj::heap<Silent>();
  auto& calls = server->calls;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::mv(server), limits, "peer");
  Connection theirs(kj::mv(ends.pipe.ends[1]), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "us");
  auto peer = theirs.bootstrapOfPeer().castAs<proto::Instance>();
  std::vector<kj::Promise<void>> pending;
  for (int i = 0; i < 1000; ++i) pending.push_back(peer.protectionsRequest().send().ignoreResult());
  ends.io.provider->getTimer().afterDelay(100 * kj::MILLISECONDS).wait(ends.io.waitScope);
  CHECK(calls > 0);
  CHECK(calls < 100);
}

TEST_CASE("G3 a message over the limit closes the connection") {
  Ends ends;
  auto limits = instanceLimits();
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Silent>(), limits, "peer");
  // One segment of 64 MiB is announced.
  uint32_t header[2] = {0, 8u << 20};
  ends.pipe.ends[1]->write(header, sizeof(header)).wait(ends.io.waitScope);
  // What it says on the way out must go somewhere; a socket has a buffer for that.
  auto farewell = ends.pipe.ends[1]->readAllBytes().eagerlyEvaluate(nullptr);
  ours.onDisconnect().wait(ends.io.waitScope);
  SUCCEED("closed");
}

TEST_CASE("a call without an answer ends at its deadline, and says whose it was") {
  Ends ends;
  auto late = withDeadline(ends.io.provider->getTimer(), 10 * kj::MILLISECONDS, "the slow one",
                           kj::Promise<int>(kj::NEVER_DONE))
                  .then([](int) { return std::string("answered"); },
                        [](kj::Exception&& exception) { return describe(exception); })
                  .wait(ends.io.waitScope);
  CHECK_THAT(late, hasText("the slow one did not answer"));
  auto answered = withDeadline(ends.io.provider->getTimer(), 60 * kj::SECONDS, "the quick one", kj::Promise<int>(3));
  CHECK(answered.wait(ends.io.waitScope) == 3);
}

TEST_CASE("a peer's words are shown without control characters, and not at any length") {
  auto exception = kj::Exception(kj::Exception::Type::FAILED, "x", 1,
                                 kj::str("remote exception: \x1b]52;c;x\x07", kj::repeat('a', 5000)));
  auto text = describe(exception);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.size() <= 1024);
  CHECK(text.find("remote exception") == std::string::npos);
}

}  // namespace
}  // namespace oc
