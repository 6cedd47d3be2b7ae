#include "speech.h"

#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <errno.h>
#include <kj/debug.h>
#include <string.h>
#include <unistd.h>

namespace oc::attack {

namespace {

namespace rpc = capnp::rpc;

constexpr int flood = 1'000'000;

class Speaker {
 public:
  Speaker(int connection, Protections truth) : connection(connection), truth(std::move(truth)) {}

  void say(const std::string& what) {
    if (what == "an answer of another type") return answerStart([](auto results) { ofAnotherType(results); });
    if (what == "another version") return answerStart([this](auto results) { honest(results, 999); });
    if (what == "a lie about its protections") {
      truth.pidNamespace = !truth.pidNamespace;
      return answerStart([this](auto results) { honest(results, proto::PROTOCOL_VERSION); });
    }
    answerStart([this](auto results) { honest(results, proto::PROTOCOL_VERSION); });
    if (what == "a million calls without an end") return callForEver();
    if (what == "a message of 1 GiB") return sayLength(1u << 27);
    if (what == "a message of 2 MiB") return sayLarge(2u << 20);
    if (what == "a message full of capabilities") return sayCapabilities();
    if (what == "bytes that are none of that") return sayBytes();
    KJ_FAIL_REQUIRE("no such speech", what.c_str());
  }

 private:
  using Results = capnp::AnyPointer::Builder;

  // What the daemon asks first: the bootstrap, and of it the protections.
  template <typename Fill>
  void answerStart(Fill fill) {
    for (int calls = 0; calls == 0;) {
      capnp::StreamFdMessageReader reader(connection);
      auto message = reader.getRoot<rpc::Message>();
      if (!message.isBootstrap() && !message.isCall()) continue;
      calls += message.isCall();
      auto question = message.isCall() ? message.getCall().getQuestionId() : message.getBootstrap().getQuestionId();
      send([&](rpc::Message::Builder out) {
        auto answer = out.initReturn();
        answer.setAnswerId(question);
        auto payload = answer.initResults();
        if (message.isCall()) return fill(payload.getContent());
        payload.initCapTable(1)[0].setSenderHosted(0);
        // A pointer to the table's first capability.
        auto pointer = capnp::AnyPointer::Builder(payload.getContent());
        capnp::BuilderCapabilityTable table;
        table.imbue(pointer).setAs<capnp::Capability>(KJ_EXCEPTION(FAILED, "by hand"));
      });
    }
  }

  void honest(Results to, uint32_t version) {
    auto results = to.initAs<proto::Instance::ProtectionsResults>();
    write(results.initProtections(), truth);
    results.setVersion(version);
  }

  // Where a struct of protections is expected, a text; and where a list of texts is, numbers.
  static void ofAnotherType(Results to) {
    auto results = to.initAsAnyStruct(1, 2);
    results.getPointerSection()[0].setAs<capnp::Text>("protections");
  }

  void callForEver() {
    for (int i = 0; i < flood; ++i) {
      send([&](rpc::Message::Builder out) {
        auto call = out.initCall();
        call.setQuestionId(i);
        call.initTarget().setImportedCap(0);
        call.setInterfaceId(capnp::typeId<proto::Instance>());
      });
    }
  }
  void sayLength(uint32_t words) {
    uint32_t header[2] = {0, words};
    put(header, sizeof(header));
    static const char zeros[1 << 16] = {};
    for (uint64_t left = uint64_t(words) * 8; left > 0; left -= sizeof(zeros)) put(zeros, sizeof(zeros));
  }
  void sayLarge(size_t bytes) {
    send([&](rpc::Message::Builder out) { out.initUnimplemented().initAbort().initReason(bytes); });
  }
  void sayCapabilities() {
    send([&](rpc::Message::Builder out) {
      auto call = out.initCall();
      call.initTarget().initPromisedAnswer();
      for (auto one : call.initParams().initCapTable(10'000)) one.setSenderHosted(7);
    });
  }
  void sayBytes() {
    for (int i = 0; i < 1000; ++i) put("\xff\xff\xff\x7f never ", 10);
  }

  template <typename Build>
  void send(Build build) {
    capnp::MallocMessageBuilder message;
    build(message.initRoot<rpc::Message>());
    auto words = capnp::messageToFlatArray(message);
    put(words.asBytes().begin(), words.asBytes().size());
  }
  // Its end is that of the speech: who does not listen has cut it off.
  void put(const void* bytes, size_t size) {
    auto* at = static_cast<const char*>(bytes);
    while (size > 0) {
      auto n = ::write(connection, at, size);
      if (n < 0) KJ_FAIL_SYSCALL("write", errno);
      at += n;
      size -= n;
    }
  }

  int connection;
  Protections truth;
};

}  // namespace

const std::vector<std::string>& allSpeeches() {
  static const std::vector<std::string> all = {"an answer of another type",
                                               "another version",
                                               "a lie about its protections",
                                               "a million calls without an end",
                                               "a message of 1 GiB",
                                               "a message of 2 MiB",
                                               "a message full of capabilities",
                                               "bytes that are none of that"};
  return all;
}

void speak(int connection, const std::string& what, const Protections& truth) {
  try {
    Speaker(connection, truth).say(what);
  } catch (const kj::Exception&) {
    // Cut off.
  }
}

}  // namespace oc::attack
