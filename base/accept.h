// Accepting for as long as the program lives: also after a time without a descriptor left.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>

#include <string>
#include <utility>

#include "log.h"

namespace oc {

// Gives each connection to `handle`, until the promise is cancelled; it never resolves. A failure (no descriptor, no
// memory) is logged under `name`, and accepting goes on a second later: at once would spin. `listener` and `timer`
// outlive the promise.
template <typename Handle>
kj::Promise<void> acceptForever(kj::ConnectionReceiver& listener, kj::Timer& timer, std::string name, Handle handle) {
  struct Acceptor {
    kj::ConnectionReceiver& listener;
    kj::Timer& timer;
    std::string name;
    Handle handle;

    kj::Promise<void> run() {
      // What accept() throws at once would end the whole loop.
      return kj::evalNow([this]() { return listener.accept(); })
          .then([this](kj::Own<kj::AsyncIoStream> stream) { handle(kj::mv(stream)); })
          .catch_([this](kj::Exception&& exception) {
            logError("{}: accept failed: {}", name, std::string(exception.getDescription().cStr()));
            return timer.afterDelay(1 * kj::SECONDS);
          })
          .then([this]() { return run(); });
    }
  };
  auto acceptor = kj::heap<Acceptor>(Acceptor{listener, timer, std::move(name), kj::mv(handle)});
  auto running = acceptor->run();
  return running.attach(kj::mv(acceptor));
}

}  // namespace oc
