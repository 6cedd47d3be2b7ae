// How often something may be done for somebody who asks for it as often as they like.
#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <algorithm>

namespace oc {

class Pace {
 public:
  // `burst` at once, and then `perSecond`.
  Pace(kj::Timer& timer, double burst, double perSecond)
      : timer(timer), burst(burst), perSecond(perSecond), allowed(burst), counted(timer.now()) {}

  // Resolves when it may be done: at once, or after those that were asked for before. The timer outlives the promise.
  kj::Promise<void> turn() {
    auto now = timer.now();
    allowed = std::min(burst, allowed + static_cast<double>((now - counted) / kj::NANOSECONDS) / 1e9 * perSecond);
    counted = now;
    allowed -= 1;
    if (allowed >= 0) return kj::READY_NOW;
    return timer.afterDelay(static_cast<int64_t>(-allowed / perSecond * 1e6) * kj::MICROSECONDS);
  }

 private:
  kj::Timer& timer;
  double burst, perSecond, allowed;
  kj::TimePoint counted;
};

}  // namespace oc
