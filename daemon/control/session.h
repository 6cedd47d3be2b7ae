// What the capabilities of one control connection share.
#pragma once

#include <kj/async.h>
#include <kj/refcount.h>

#include <string>
#include <type_traits>

#include "proto/rpc.h"

namespace oc::control {

// An exception with this text and nothing of where it was thrown.
inline kj::Exception plainError(kj::Exception::Type type, const std::string& text) {
  return kj::Exception(type, "control", 0, kj::heapString(text.data(), text.size()));
}

// Runs the body of a handler. What it throws, now or later, leaves as one short printable line: a person reads it.
template <typename Body>
kj::Promise<void> answer(Body&& body) {
  auto run = [&body]() -> kj::Promise<void> {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return kj::READY_NOW;
    } else {
      return body();
    }
  };
  return kj::evalNow(run).catch_(
      [](kj::Exception&& exception) { kj::throwFatalException(plainError(exception.getType(), describe(exception))); });
}

class Session final : public kj::Refcounted {
 public:
  bool loggedIn = false;

  // For what waits for the world (a run's end, more of a log): ends with the connection, where RPC alone would let
  // it wait on for nobody. At most 64 at a time.
  kj::Promise<void> wait(kj::Promise<void> promise) {
    if (waiting >= mostWaits) {
      return plainError(kj::Exception::Type::OVERLOADED, "this connection waits for 64 things already");
    }
    ++waiting;
    return canceler.wrap(kj::mv(promise)).attach(kj::defer([self = kj::addRef(*this)]() mutable { --self->waiting; }));
  }

  void close() { canceler.cancel("the connection was closed"); }

 private:
  static constexpr size_t mostWaits = 64;
  size_t waiting = 0;
  kj::Canceler canceler;
};

}  // namespace oc::control
