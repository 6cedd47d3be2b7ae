#include "service.h"

#include <systemd/sd-daemon.h>

namespace oc::service {

namespace {

kj::Promise<void> feedEvery(kj::Timer& timer, kj::Duration interval) {
  sd_notify(0, "WATCHDOG=1");
  return timer.afterDelay(interval).then([&timer, interval]() { return feedEvery(timer, interval); });
}

}  // namespace

void ready() { sd_notify(0, "READY=1"); }
void reloading() { sd_notify(0, "RELOADING=1"); }
void stopping() { sd_notify(0, "STOPPING=1"); }

void runs(size_t live) { sd_notifyf(0, "STATUS=%zu run%s alive", live, live == 1 ? "" : "s"); }

kj::Promise<void> feedWatchdog(kj::Timer& timer) {
  uint64_t limit = 0;
  if (sd_watchdog_enabled(0, &limit) <= 0) return kj::NEVER_DONE;
  return feedEvery(timer, limit / 2 * kj::MICROSECONDS);
}

}  // namespace oc::service
