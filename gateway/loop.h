// An event loop for many sockets: edge-triggered epoll and timers, nothing else. It is driven by whoever waits on its
// descriptor, KJ's loop in the gateway and the entry point's own in a container.
#pragma once

#include <kj/io.h>
#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace oc::gateway {

// Told when its descriptor may have become ready. May destroy anything, itself included, once it is unwatched.
class Watcher {
 public:
  virtual void ready(uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

class Loop {
 public:
  Loop();
  KJ_DISALLOW_COPY(Loop);

  // Readable when turn() has something to do.
  int descriptor() const { return epoll.get(); }

  // Edge-triggered for reading and writing: ready() comes once, and again after the descriptor answered "would block".
  void watch(int fd, Watcher& watcher);
  // Level-triggered, for these alone; may be called again to change them.
  void watchLevel(int fd, Watcher& watcher, bool readable, bool writable);
  // Before the descriptor is closed or its watcher goes away. Nothing reaches the watcher afterwards.
  void unwatch(int fd, Watcher& watcher);
  // Calls ready(0) in a later turn, for one who stopped in the middle so that others get theirs.
  void again(Watcher& watcher);

  // Handles what is ready. Waits up to `milliseconds` for it, -1: for as long as it takes.
  void turn(int milliseconds);

  // Milliseconds of the monotonic clock, as of this turn.
  int64_t now() const { return clock; }

 private:
  friend class Timer;
  using Timers = std::multimap<int64_t, class Timer*>;

  void tick();
  void arm();
  void comeBack();
  void runAgain();
  void runTimers();

  kj::AutoCloseFd epoll, alarm;
  int64_t clock = 0;
  int64_t armed = 0;  // 0: the alarm is off
  Timers timers;
  std::vector<Watcher*> postponed, resumed;
  // What epoll told and has not been handed on yet.
  epoll_event events[64];
  int begun = 0, told = 0;
};

// Calls a function once, some time later. Going away stops it.
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> late);
  ~Timer();
  KJ_DISALLOW_COPY(Timer);

  void start(int64_t milliseconds);
  void stop();
  bool isRunning() const { return running; }

 private:
  friend class Loop;
  Loop& loop;
  std::function<void()> late;
  Loop::Timers::iterator place;
  bool running = false;
};

}  // namespace oc::gateway
