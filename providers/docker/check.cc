#include "check.h"

#include <capnp/serialize.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include <cstring>

#include "gateway.capnp.h"
#include "json_fields.h"
#include "providers/kit/frames.h"
#include "refusals.h"

namespace oc::docker {

namespace {

constexpr auto mostTime = 30 * kj::SECONDS;
constexpr auto mostGatewayTime = 10 * kj::SECONDS;
constexpr size_t mostOutput = 64u << 10;

// A message's words, aligned.
kj::Array<capnp::word> copyWords(capnp::Data::Reader data) {
  auto words = kj::heapArray<capnp::word>(data.size() / sizeof(capnp::word));
  memcpy(words.begin(), data.begin(), words.size() * sizeof(capnp::word));
  return words;
}

// What a gateway is offered here: nobody keeps a record of a check, and it has no toolbelt.
class SilentHost final : public proto::GatewayHost::Server {
 public:
  kj::Promise<void> connection(ConnectionContext) override { return kj::READY_NOW; }
};

}  // namespace

Checking::Checking(kj::Timer& timer, Engine& engine, Setup setup, std::string contextParam)
    : timer(timer),
      engine(engine),
      agent(kj::mv(setup.agent)),
      gateway(kj::mv(setup.gateway)),
      policy(copyWords(setup.gatewayPolicy)),
      network(setup.spec.network),
      context(kj::mv(contextParam)),
      containers(timer, {engine, engine, nullptr, *agent, gateway.get()}, kj::mv(setup.spec), context) {}

Step Checking::run() {
  auto checked = inOrder(
      containers.make(), [this]() { return containers.startGateway(); }, [this]() { return configureGateway(); },
      [this]() { return containers.startAgent(); }, [this]() { return readOutput(); }, [this]() { return readEnd(); });
  return checked.catch_([](kj::Exception&& exception) { return std::optional<Refusal>(engineGone(exception)); })
      .then([this](std::optional<Refusal> refusal) { return remove(kj::mv(refusal)); });
}

Step Checking::configureGateway() {
  if (!network) return done();
  toGateway = kj::heap<Connection>(kit::framedStream(kj::mv(gateway), "the gateway"),
                                   capnp::rpc::twoparty::Side::CLIENT, nullptr, instanceLimits(), "the gateway");
  capnp::FlatArrayMessageReader message(policy);
  auto request = toGateway->bootstrapOfPeer().castAs<proto::Gateway>().configureRequest();
  request.setPolicy(message.getRoot<proto::GatewayPolicy>());
  request.setHost(kj::heap<SilentHost>());
  auto configured = withDeadline(timer, mostGatewayTime, "the gateway", request.send().ignoreResult());
  return configured.then(
      []() { return std::optional<Refusal>(); },
      [](kj::Exception&& exception) {
        return std::optional<Refusal>(
            Refusal{"sandbox_unavailable", fmt::format("the gateway does not answer as one: {}", describe(exception)),
                    "is the gateway image the one that belongs to this version? open-conduit doctor names it"});
      });
}

Step Checking::readOutput() {
  return readSome().exclusiveJoin(timer.afterDelay(mostTime)).then([]() { return std::optional<Refusal>(); });
}

// To the stream's end, which is the container's.
kj::Promise<void> Checking::readSome() {
  return agent->tryRead(buffer, 1, sizeof(buffer)).then([this](size_t n) -> kj::Promise<void> {
    if (n == 0) return kj::READY_NOW;
    frames.feed(kj::arrayPtr(buffer, n), [this](kit::FrameReader::Stream stream, kj::ArrayPtr<const kj::byte> bytes) {
      if (stream != kit::FrameReader::Stream::Output) return;
      auto room = mostOutput - text.size();
      text.append(reinterpret_cast<const char*>(bytes.begin()), kj::min(room, bytes.size()));
    });
    return readSome();
  });
}

Step Checking::readEnd() {
  return engine.get("/containers/" + containers.agentId() + "/json")
      .then([this](Answer answer) -> std::optional<Refusal> {
        if (!answer.good()) return refusalOf(answer, "tell how the container ended", context);
        auto& state = objectField(answer.body, "State");
        if (!boolField(state, "Running")) code = static_cast<int>(numberField(state, "ExitCode"));
        return std::nullopt;
      });
}

Step Checking::remove(std::optional<Refusal> refusal) {
  return containers.remove().then(
      [refusal](OrRefusal<Removed> removed) -> std::optional<Refusal> {
        if (refusal) return refusal;
        if (!removed) return removed.refusal();
        if (removed.value().left.empty()) return std::nullopt;
        return Refusal{"sandbox_unavailable", "what the check made cannot be removed: " + removed.value().left[0], ""};
      },
      [refusal](kj::Exception&& exception) { return refusal ? refusal : engineGone(exception); });
}

}  // namespace oc::docker
