#include "hostile_peer.h"

#include <capnp/serialize-async.h>
#include <capnp/serialize.h>
#include <kj/debug.h>

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>

namespace oc::fuzz {

namespace rpc = capnp::rpc;

namespace {

// A list's elements are few, unless they cost nothing on the wire.
constexpr uint32_t mostFree = (1u << 29) - 1;

capnp::Capability::Client nothing() { return capnp::Capability::Client(KJ_EXCEPTION(FAILED, "not there")); }

void fillStruct(capnp::AnyStruct::Builder to, Input& input, capnp::BuilderCapabilityTable& table, int depth) {
  for (auto& byte : to.getDataSection()) byte = input.byte();
  for (auto pointer : to.getPointerSection()) fillAnything(pointer, input, table, depth + 1);
}

}  // namespace

void fillAnything(capnp::AnyPointer::Builder to, Input& input, capnp::BuilderCapabilityTable& table, int depth) {
  if (input.done() || depth > 40) return;
  switch (input.below(10)) {
    case 0: break;
    case 1:
    case 2: {
      auto bytes = input.bytes();
      to.setAs<capnp::Text>(kj::StringPtr(bytes.c_str(), bytes.size()));
      break;
    }
    case 3: {
      auto bytes = input.bytes();
      to.setAs<capnp::Data>(kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
      break;
    }
    case 4:
    case 5: {
      auto words = static_cast<uint16_t>(input.below(9));
      auto pointers = static_cast<uint16_t>(input.below(9));
      fillStruct(to.initAsAnyStruct(words, pointers), input, table, depth);
      break;
    }
    case 6: {
      auto words = static_cast<uint16_t>(input.below(4));
      auto pointers = static_cast<uint16_t>(input.below(6));
      // Elements of no size are as many as they like.
      auto count = words + pointers == 0 ? static_cast<uint32_t>(input.number()) & mostFree
                                         : static_cast<uint32_t>(input.below(70));
      auto list = to.initAsListOfAnyStruct(words, pointers, count);
      if (words + pointers == 0) break;
      for (auto one : list) fillStruct(one, input, table, depth);
      break;
    }
    case 7: {
      auto list = to.initAsAnyList(capnp::ElementSize::POINTER, static_cast<uint32_t>(input.below(200)));
      for (auto pointer : list.as<capnp::List<capnp::AnyPointer>>()) fillAnything(pointer, input, table, depth + 1);
      break;
    }
    case 8: {
      constexpr capnp::ElementSize sizes[] = {capnp::ElementSize::VOID, capnp::ElementSize::BIT,
                                              capnp::ElementSize::BYTE, capnp::ElementSize::TWO_BYTES,
                                              capnp::ElementSize::EIGHT_BYTES};
      auto size = sizes[input.below(5)];
      auto count = static_cast<uint32_t>(input.number());
      to.initAsAnyList(size, size == capnp::ElementSize::VOID ? count & mostFree : count % 5000);
      break;
    }
    default: {
      capnp::AnyPointer::Builder imbued = table.imbue(to);
      imbued.setAs<capnp::Capability>(nothing());
    }
  }
}

HostilePeer::HostilePeer(kj::Own<kj::AsyncIoStream> streamParam, std::vector<Method> methods)
    : stream(kj::mv(streamParam)), methods(std::move(methods)), listening(listen().eagerlyEvaluate(nullptr)) {}

HostilePeer::~HostilePeer() noexcept(false) {
  listening = nullptr;
  writing = nullptr;
}

// What the other side asks is remembered, so that answers can be given to it.
kj::Promise<void> HostilePeer::listen() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 64u << 20;
  return capnp::readMessage(*stream, options)
      .then([this](kj::Own<capnp::MessageReader> read) {
        auto message = read->getRoot<rpc::Message>();
        if (message.isCall()) questions.push_back(message.getCall().getQuestionId());
        if (message.isBootstrap()) questions.push_back(message.getBootstrap().getQuestionId());
        return listen();
      })
      .catch_([this](kj::Exception&&) { cutOff = true; });
}

void HostilePeer::write(kj::Array<kj::byte> bytes) {
  writing = writing
                .then([this, bytes = kj::mv(bytes)]() mutable {
                  auto written = stream->write(bytes.begin(), bytes.size());
                  return written.attach(kj::mv(bytes));
                })
                .catch_([this](kj::Exception&&) { cutOff = true; })
                .eagerlyEvaluate(nullptr);
}

void HostilePeer::send(Build build, Input* damage) {
  capnp::MallocMessageBuilder message;
  build(message.initRoot<rpc::Message>());
  if (getenv("FUZZ_TRACE") != nullptr) fprintf(stderr, "> %s\n", kj::str(message.getRoot<rpc::Message>()).cStr());
  auto words = capnp::messageToFlatArray(message);
  auto bytes = kj::heapArray<kj::byte>(words.asBytes());
  // A byte here and there is another's: pointers, sizes, segments.
  if (damage != nullptr && damage->below(4) == 0) {
    for (size_t left = damage->below(4); left > 0; --left) bytes[damage->number() % bytes.size()] = damage->byte();
  }
  write(kj::mv(bytes));
}

void HostilePeer::bootstrap(uint32_t question) {
  send([&](rpc::Message::Builder message) { message.initBootstrap().setQuestionId(question); });
}

void HostilePeer::call(uint32_t question, uint32_t target, std::vector<uint16_t> path, Method method,
                       kj::FunctionParam<void(capnp::AnyPointer::Builder)> fill) {
  lastQuestion = std::max(lastQuestion, question);
  send([&](rpc::Message::Builder message) {
    auto call = message.initCall();
    call.setQuestionId(question);
    auto promised = call.initTarget().initPromisedAnswer();
    promised.setQuestionId(target);
    auto transform = promised.initTransform(path.size());
    for (size_t i = 0; i < path.size(); ++i) transform[i].setGetPointerField(path[i]);
    call.setInterfaceId(method.interface);
    call.setMethodId(method.number);
    fill(call.initParams().getContent());
  });
}

void HostilePeer::target(rpc::MessageTarget::Builder to, Input& input) {
  if (input.below(4) == 0) {
    to.setImportedCap(static_cast<uint32_t>(input.number()));
    return;
  }
  auto promised = to.initPromisedAnswer();
  promised.setQuestionId(static_cast<uint32_t>(input.number()));
  auto transform = promised.initTransform(input.below(3));
  for (auto step : transform) {
    if (input.below(8) != 0) step.setGetPointerField(static_cast<uint16_t>(input.below(4)));
  }
}

void HostilePeer::payload(rpc::Payload::Builder to, Input& input) {
  capnp::BuilderCapabilityTable table;
  fillAnything(to.initContent(), input, table);
  // The table that goes along need not fit.
  auto count = table.getTable().size() + (input.below(8) == 0 ? input.below(70) : 0);
  auto list = to.initCapTable(count);
  for (auto descriptor : list) {
    switch (input.below(6)) {
      case 0: break;
      case 1: descriptor.setSenderHosted(static_cast<uint32_t>(input.number())); break;
      case 2: descriptor.setSenderPromise(static_cast<uint32_t>(input.number())); break;
      case 3: descriptor.setReceiverHosted(static_cast<uint32_t>(input.number())); break;
      case 4: {
        auto answer = descriptor.initReceiverAnswer();
        answer.setQuestionId(static_cast<uint32_t>(input.number()));
        auto transform = answer.initTransform(input.below(3));
        for (auto step : transform) step.setGetPointerField(static_cast<uint16_t>(input.below(4)));
        break;
      }
      default: descriptor.initThirdPartyHosted().setVineId(static_cast<uint32_t>(input.number()));
    }
  }
}

void HostilePeer::sendCall(rpc::Message::Builder message, Input& input) {
  auto call = message.initCall();
  call.setQuestionId(input.below(4) == 0 ? static_cast<uint32_t>(input.number()) : ++lastQuestion);
  target(call.initTarget(), input);
  auto method = methods[input.below(methods.size())];
  if (input.below(16) == 0) method = {input.number(), static_cast<uint16_t>(input.number())};
  call.setInterfaceId(method.interface);
  call.setMethodId(method.number);
  payload(call.initParams(), input);
  switch (input.below(8)) {
    case 0: call.getSendResultsTo().setYourself(); break;
    case 1: call.getSendResultsTo().initThirdParty(); break;
    default: break;
  }
}

void HostilePeer::sendReturn(rpc::Message::Builder message, uint32_t question, Input& input) {
  auto answer = message.initReturn();
  answer.setAnswerId(question);
  answer.setReleaseParamCaps(input.below(2) == 0);
  switch (input.below(12)) {
    case 0: answer.setCanceled(); break;
    case 1: answer.setResultsSentElsewhere(); break;
    case 2: answer.setTakeFromOtherQuestion(static_cast<uint32_t>(input.number())); break;
    case 3: answer.initAcceptFromThirdParty(); break;
    case 4: {
      auto exception = answer.initException();
      auto reason = input.bytes();
      exception.setReason(kj::StringPtr(reason.c_str(), reason.size()));
      exception.setType(static_cast<rpc::Exception::Type>(input.byte()));
      break;
    }
    default: payload(answer.initResults(), input);
  }
}

void HostilePeer::answer(Input& input) {
  auto all = std::move(questions);
  questions.clear();
  for (auto question : all) {
    send([&](rpc::Message::Builder message) { sendReturn(message, question, input); }, &input);
  }
}

void HostilePeer::say(Input& input) {
  auto kind = input.below(16);
  if (kind == 15) {
    auto bytes = input.bytes();
    return write(kj::heapArray(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()));
  }
  send(
      [&](rpc::Message::Builder message) {
        switch (kind) {
          case 0: message.initBootstrap().setQuestionId(static_cast<uint32_t>(input.number())); break;
          case 1: {
            auto finish = message.initFinish();
            finish.setQuestionId(static_cast<uint32_t>(input.number()));
            finish.setReleaseResultCaps(input.below(2) == 0);
            break;
          }
          case 2: {
            auto release = message.initRelease();
            release.setId(static_cast<uint32_t>(input.number()));
            release.setReferenceCount(static_cast<uint32_t>(input.number()));
            break;
          }
          case 3: {
            auto resolve = message.initResolve();
            resolve.setPromiseId(static_cast<uint32_t>(input.number()));
            if (input.below(2) == 0) {
              resolve.initCap().setReceiverHosted(static_cast<uint32_t>(input.number()));
            } else {
              resolve.initException().setReason("no");
            }
            break;
          }
          case 4: {
            auto disembargo = message.initDisembargo();
            target(disembargo.initTarget(), input);
            auto context = disembargo.getContext();
            switch (input.below(4)) {
              case 0: context.setSenderLoopback(static_cast<uint32_t>(input.number())); break;
              case 1: context.setReceiverLoopback(static_cast<uint32_t>(input.number())); break;
              case 2: context.setAccept(); break;
              default: context.setProvide(static_cast<uint32_t>(input.number()));
            }
            break;
          }
          case 5: sendReturn(message, static_cast<uint32_t>(input.number()), input); break;
          case 6:
            message.initUnimplemented().initBootstrap().setQuestionId(static_cast<uint32_t>(input.number()));
            break;
          case 7: message.initAbort().setReason("enough"); break;
          case 8: sendCall(message.initUnimplemented(), input); break;
          default: sendCall(message, input);
        }
      },
      &input);
}

}  // namespace oc::fuzz
