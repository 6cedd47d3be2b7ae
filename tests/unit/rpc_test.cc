// What a hostile peer cannot do to a connection.
#include "proto/rpc.h"

#include <capnp/serialize-async.h>

#include "common.capnp.h"
#include <capnp/rpc-twoparty.h>
#include <capnp/rpc.capnp.h>

#include "proto/convert.h"
#include "proto/shim_peer.h"

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

class Prompt final : public proto::Instance::Server {
 public:
  kj::Promise<void> protections(ProtectionsContext) override { return kj::READY_NOW; }
};

class Wordy final : public proto::Instance::Server {
 public:
  kj::Promise<void> protections(ProtectionsContext context) override {
    context.getResults().initProtections().initMissing(1).init(0, 256u << 10);
    return kj::READY_NOW;
  }
};

class Verbose final : public proto::Instance::Server {
 public:
  kj::Promise<void> protections(ProtectionsContext context) override {
    context.getResults().initProtections().initMissing(1).init(0, size);
    return kj::READY_NOW;
  }
  static constexpr size_t size = 3u << 20;
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

TEST_CASE("G3 an instance that asks for what is not offered to it is told so, and harms nobody") {
  Ends ends;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::CLIENT, nullptr, instanceLimits(), "peer");
  capnp::TwoPartyClient theirs(*ends.pipe.ends[1], kj::heap<Prompt>(), capnp::rpc::twoparty::Side::SERVER);
  auto offered = theirs.bootstrap().castAs<proto::Instance>();
  std::string said;
  offered.protectionsRequest()
      .send()
      .ignoreResult()
      .catch_([&said](kj::Exception&& exception) { said = describe(exception); })
      .wait(ends.io.waitScope);
  CHECK_THAT(said, hasText("nothing is offered"));
  // What it serves can be called as before.
  ours.bootstrapOfPeer().castAs<proto::Instance>().protectionsRequest().send().wait(ends.io.waitScope);
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

// Reads all that comes, as a peer would, without taking it apart.
kj::Promise<void> swallow(kj::AsyncInputStream& from) {
  return from.readAllBytes().ignoreResult().catch_([](kj::Exception&&) {});
}

// Says `message` over and over, until nobody listens any more or it was said `times`.
kj::Promise<int> flood(kj::AsyncOutputStream& to, capnp::MessageBuilder& message, int times, int said = 0) {
  if (said == times) return said;
  return capnp::writeMessage(to, message)
      .then([&to, &message, times, said]() { return flood(to, message, times, said + 1); },
            [said](kj::Exception&&) { return said; });
}

TEST_CASE("G3 a peer without a total is cut off for the questions that it leaves open") {
  Ends ends;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Silent>(), shimLimits(),
                  "peer");
  auto swallowing = swallow(*ends.pipe.ends[1]).eagerlyEvaluate(nullptr);
  std::vector<kj::Own<capnp::MallocMessageBuilder>> messages;
  auto saying = kj::Promise<void>(kj::READY_NOW);
  // Each asks for the bootstrap and never says that it is done with it.
  for (uint32_t i = 0; i < 2000; ++i) {
    auto message = kj::heap<capnp::MallocMessageBuilder>(32);
    message->initRoot<capnp::rpc::Message>().initBootstrap().setQuestionId(i);
    auto& ref = *message;
    messages.push_back(kj::mv(message));
    saying = saying.then([&ends, &ref]() { return capnp::writeMessage(*ends.pipe.ends[1], ref); });
  }
  auto said = saying.catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
  ours.onDisconnect().wait(ends.io.waitScope);
  CHECK_THAT(ours.violation(), hasText("questions open"));
}

TEST_CASE("G3 an honest peer may ask as often as it likes") {
  Ends ends;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Prompt>(), shimLimits(),
                  "peer");
  Connection theirs(kj::mv(ends.pipe.ends[1]), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "us");
  auto peer = theirs.bootstrapOfPeer().castAs<proto::Instance>();
  for (int i = 0; i < 5000; ++i) peer.protectionsRequest().send().ignoreResult().wait(ends.io.waitScope);
  CHECK(ours.violation() == "");
}

TEST_CASE("what a peer is told may be longer than what it may say") {
  Ends ends;
  SECTION("told") {
    Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Verbose>(), shimLimits(),
                    "peer");
    Connection theirs(kj::mv(ends.pipe.ends[1]), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "us");
    auto peer = theirs.bootstrapOfPeer().castAs<proto::Instance>();
    auto told = peer.protectionsRequest().send().wait(ends.io.waitScope);
    CHECK(told.getProtections().getMissing()[0].size() == Verbose::size);
  }
  SECTION("said") {
    Connection theirs(kj::mv(ends.pipe.ends[1]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Verbose>(), RpcLimits(),
                      "us");
    Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::CLIENT, nullptr, shimLimits(), "peer");
    auto peer = ours.bootstrapOfPeer().castAs<proto::Instance>();
    CHECK_THROWS(peer.protectionsRequest().send().wait(ends.io.waitScope));
  }
}

TEST_CASE("a peer that has proved who it is has no total") {
  Ends ends;
  Connection theirs(kj::mv(ends.pipe.ends[1]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Wordy>(), RpcLimits(),
                    "us");
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::CLIENT, nullptr, instanceLimits(), "peer");
  auto peer = ours.bootstrapOfPeer().castAs<proto::Instance>();
  auto askOften = [&]() {
    for (int i = 0; i < 10; ++i) peer.protectionsRequest().send().ignoreResult().wait(ends.io.waitScope);
  };
  SECTION("proved") {
    ours.trust();
    askOften();
    CHECK(ours.violation() == "");
  }
  SECTION("not proved") {
    CHECK_THROWS(askOften());
    CHECK_THAT(ours.violation(), hasText("it sent more than"));
  }
}

TEST_CASE("G3 a message full of capabilities cuts its sender off") {
  Ends ends;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Silent>(), shimLimits(),
                  "peer");
  auto swallowing = swallow(*ends.pipe.ends[1]).eagerlyEvaluate(nullptr);
  capnp::MallocMessageBuilder message;
  auto call = message.initRoot<capnp::rpc::Message>().initCall();
  call.getTarget().setImportedCap(0);
  auto table = call.initParams().initCapTable(5000);
  for (uint32_t i = 0; i < table.size(); ++i) table[i].setSenderHosted(i);
  auto said = flood(*ends.pipe.ends[1], message, 1).eagerlyEvaluate(nullptr);
  ours.onDisconnect().wait(ends.io.waitScope);
  CHECK_THAT(ours.violation(), hasText("capabilities"));
}

// A peer that asks, says that it is done, and never reads what it was answered.
TEST_CASE("G3 a peer that does not read is not read from") {
  Ends ends;
  Connection ours(kj::mv(ends.pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER, kj::heap<Wordy>(), shimLimits(),
                  "peer");
  int asked = 0;
  std::vector<kj::Own<capnp::MallocMessageBuilder>> messages;
  auto say = [&](auto&& fill) {
    auto message = kj::heap<capnp::MallocMessageBuilder>(64);
    fill(message->template initRoot<capnp::rpc::Message>());
    messages.push_back(kj::mv(message));
  };
  say([](auto to) { to.initBootstrap().setQuestionId(0); });
  for (uint32_t i = 1; i < 400; ++i) {
    say([i](auto to) {
      auto call = to.initCall();
      call.setQuestionId(i);
      call.setInterfaceId(capnp::typeId<proto::Instance>());
      call.getTarget().initPromisedAnswer().setQuestionId(0);
    });
    say([i](auto to) { to.initFinish().setQuestionId(i); });
  }
  kj::Promise<void> saying = kj::READY_NOW;
  for (auto& message : messages) {
    saying = saying.then([&]() { return capnp::writeMessage(*ends.pipe.ends[1], *message); }).then([&]() { ++asked; });
  }
  auto said = saying.eagerlyEvaluate(nullptr);
  ends.io.provider->getTimer().afterDelay(200 * kj::MILLISECONDS).wait(ends.io.waitScope);
  // Each answer has 256 KiB: of 400 of them, 8 MiB and a little may wait.
  CHECK(asked > 20);
  CHECK(asked < 200);
  CHECK(ours.violation() == "");
  // The positive control: who reads gets all of them.
  auto reading = swallow(*ends.pipe.ends[1]).eagerlyEvaluate(nullptr);
  said.wait(ends.io.waitScope);
  CHECK(asked == int(messages.size()));
}

TEST_CASE("G3 a shim is read from at its pace, and not faster") {
  Ends ends;
  auto stream = paced(kj::mv(ends.pipe.ends[0]), ends.io.provider->getTimer());
  std::vector<kj::byte> piece(1u << 20);
  auto writing = kj::Promise<void>(kj::READY_NOW);
  for (int i = 0; i < 16; ++i) {
    writing = writing.then([&]() { return ends.pipe.ends[1]->write(piece.data(), piece.size()); });
  }
  auto written = writing.eagerlyEvaluate(nullptr);
  size_t total = 0;
  auto buffer = kj::heapArray<kj::byte>(256u << 10);
  kj::Function<kj::Promise<void>()> read = [&]() -> kj::Promise<void> {
    return stream->tryRead(buffer.begin(), 1, buffer.size()).then([&](size_t n) {
      total += n;
      return read();
    });
  };
  auto reading = read().eagerlyEvaluate(nullptr);
  auto begin = ends.io.provider->getTimer().now();
  ends.io.provider->getTimer().afterDelay(300 * kj::MILLISECONDS).wait(ends.io.waitScope);
  auto seconds = double((ends.io.provider->getTimer().now() - begin) / kj::MILLISECONDS) / 1000;
  CHECK(total >= 4u << 20);
  CHECK(double(total) <= (4.5 + seconds) * (1 << 20));
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
