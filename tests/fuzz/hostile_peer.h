// The other end of a Cap'n Proto connection, taken over: it sends whatever an input says. Most of it has a message's
// form, so that it gets past the first check: calls of methods that are there, with arguments of any shape; answers
// that nobody asked for; capabilities that are not there; and bytes that are none of that.
#pragma once

#include <capnp/any.h>
#include <capnp/capability.h>
#include <capnp/message.h>
#include <capnp/rpc.capnp.h>
#include <kj/async-io.h>

#include <map>
#include <vector>

#include "input.h"

namespace oc::fuzz {

// Of any shape: texts, lists, structs in structs, numbers, capabilities.
void fillAnything(capnp::AnyPointer::Builder to, Input& input, capnp::BuilderCapabilityTable& capabilities,
                  int depth = 0);

struct Method {
  uint64_t interface;
  uint16_t number;
};

class HostilePeer {
 public:
  // `methods` are those that it knows to be there.
  HostilePeer(kj::Own<kj::AsyncIoStream> stream, std::vector<Method> methods);
  ~HostilePeer() noexcept(false);

  // One thing said, as the input has it.
  void say(Input& input);
  // Each call that came is answered, as the input has it. What came is read in `waitScope.poll()`.
  void answer(Input& input);

  // Things said properly: for what is only to be had in order.
  void bootstrap(uint32_t question);
  // On what the answer to `question` gives out by the pointers in `path`.
  void call(uint32_t question, uint32_t target, std::vector<uint16_t> path, Method method,
            kj::FunctionParam<void(capnp::AnyPointer::Builder)> fill);

  bool isCutOff() const { return cutOff; }
  // How many calls of the other side are not answered yet.
  size_t asked() const { return questions.size(); }

 private:
  using Build = kj::FunctionParam<void(capnp::rpc::Message::Builder)>;
  void send(Build build, Input* damage = nullptr);
  void sendCall(capnp::rpc::Message::Builder message, Input& input);
  void sendReturn(capnp::rpc::Message::Builder message, uint32_t question, Input& input);
  void target(capnp::rpc::MessageTarget::Builder to, Input& input);
  void payload(capnp::rpc::Payload::Builder to, Input& input);
  void write(kj::Array<kj::byte> bytes);
  kj::Promise<void> listen();

  kj::Own<kj::AsyncIoStream> stream;
  std::vector<Method> methods;
  std::vector<uint32_t> questions;  // of the other side
  bool cutOff = false;
  uint32_t lastQuestion = 0;
  kj::Promise<void> writing = kj::READY_NOW;
  kj::Promise<void> listening = nullptr;
};

}  // namespace oc::fuzz
