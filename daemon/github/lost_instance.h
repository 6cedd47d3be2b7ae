// What an instance of the provider died under is asked of the next one.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include "base/log.h"

namespace oc::hub {

// `attempt(again)` asks, each time of the connection's client; `again` is true when an earlier one may have been
// carried out. It is asked five times in all, which an instance that dies of the very question cannot make endless.
template <typename T, typename Attempt>
kj::Promise<T> pastLostInstances(kj::Timer& timer, Attempt attempt, bool again = false, unsigned tries = 5) {
  auto asked = kj::evalNow([&]() -> kj::Promise<T> { return attempt(again); });
  return asked.catch_([&timer, attempt = kj::mv(attempt), tries](kj::Exception&& exception) mutable -> kj::Promise<T> {
    if (exception.getType() != kj::Exception::Type::DISCONNECTED || tries <= 1) return kj::mv(exception);
    logInfo("the github provider was lost in the middle of a call, which is made again");
    // That it is dead is not known everywhere yet.
    return timer.afterDelay(100 * kj::MILLISECONDS).then([&timer, attempt = kj::mv(attempt), tries]() mutable {
      return pastLostInstances<T>(timer, kj::mv(attempt), true, tries - 1);
    });
  });
}

}  // namespace oc::hub
