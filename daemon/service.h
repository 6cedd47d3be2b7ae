// What systemd is told, where it started us; nothing otherwise.
#pragma once

#include <kj/timer.h>

#include <cstddef>

namespace oc::service {

void ready();
void reloading();
void stopping();
// One line for `systemctl status`.
void runs(size_t live);

// Tells systemd's watchdog that the event loop turns, twice in the time that the unit gives it. Never resolves; without
// a watchdog it never wakes up either.
kj::Promise<void> feedWatchdog(kj::Timer& timer);

}  // namespace oc::service
