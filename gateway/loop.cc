#include "loop.h"

#include <kj/debug.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace oc::gateway {

namespace {

// After so many rounds of events KJ gets its turn: the channel to the shim must not wait for a busy tunnel.
constexpr int mostRounds = 8;

kj::AutoCloseFd makeEpoll() {
  int fd;
  KJ_SYSCALL(fd = epoll_create1(EPOLL_CLOEXEC));
  return kj::AutoCloseFd(fd);
}

kj::AutoCloseFd makeAlarm(int epoll) {
  int fd;
  KJ_SYSCALL(fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  kj::AutoCloseFd alarm(fd);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  KJ_SYSCALL(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
  return alarm;
}

}  // namespace

Loop::Loop() : epoll(makeEpoll()), alarm(makeAlarm(epoll)) { tick(); }

void Loop::watch(int fd, Watcher& watcher) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watcher;
  KJ_SYSCALL(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

void Loop::watchLevel(int fd, Watcher& watcher, bool readable, bool writable) {
  epoll_event event{};
  event.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
  event.data.ptr = &watcher;
  if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0) return;
  KJ_SYSCALL(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

void Loop::unwatch(int fd, Watcher& watcher) {
  epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
  for (int i = begun; i < told; ++i) {
    if (events[i].data.ptr == &watcher) events[i].events = 0;
  }
  std::replace(postponed.begin(), postponed.end(), &watcher, static_cast<Watcher*>(nullptr));
  std::replace(resumed.begin(), resumed.end(), &watcher, static_cast<Watcher*>(nullptr));
}

void Loop::again(Watcher& watcher) {
  postponed.push_back(&watcher);
  arm();
}

void Loop::tick() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  clock = time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// The alarm goes off at the first timer's time; at once when somebody waits to be called again.
void Loop::arm() {
  int64_t wanted = !postponed.empty() ? 1 : timers.empty() ? 0 : std::max<int64_t>(timers.begin()->first, 1);
  // One that goes off early costs a turn, one that is set for each request a system call each.
  if (wanted == 0 || (armed != 0 && armed <= wanted)) return;
  itimerspec spec{};
  spec.it_value.tv_sec = wanted / 1000;
  spec.it_value.tv_nsec = (wanted % 1000) * 1000000;
  KJ_SYSCALL(timerfd_settime(alarm, TFD_TIMER_ABSTIME, &spec, nullptr));
  armed = wanted;
}

// There may be more. Whoever drives us sees only what is new, and an alarm that went off already, and waits behind the
// rest, is not: it is set once more.
void Loop::comeBack() {
  postponed.push_back(nullptr);
  armed = 0;
}

void Loop::turn(int milliseconds) {
  runAgain();
  for (int round = 0; round < mostRounds; ++round) {
    int count = epoll_wait(epoll, events, 64, round == 0 ? milliseconds : 0);
    if (count <= 0) break;
    tick();
    begun = 0;
    told = count;
    while (begun < told) {
      auto event = events[begun++];
      if (event.events == 0) continue;
      if (event.data.ptr == nullptr) {
        runTimers();
      } else {
        static_cast<Watcher*>(event.data.ptr)->ready(event.events);
      }
    }
    begun = told = 0;
    if (round + 1 == mostRounds) comeBack();
  }
  arm();
}

void Loop::runAgain() {
  resumed.swap(postponed);
  // By index: one of them may unwatch another that is still to come.
  for (size_t i = 0; i < resumed.size(); ++i) {
    if (resumed[i] != nullptr) resumed[i]->ready(0);
  }
  resumed.clear();
}

void Loop::runTimers() {
  uint64_t count;
  ssize_t ignored = read(alarm, &count, sizeof(count));
  (void)ignored;
  armed = 0;
  while (!timers.empty() && timers.begin()->first <= clock) {
    auto timer = timers.begin()->second;
    timer->stop();
    // A copy: the call may destroy the timer.
    auto late = timer->late;
    late();
  }
}

Timer::Timer(Loop& loop, std::function<void()> late) : loop(loop), late(std::move(late)) {}

Timer::~Timer() { stop(); }

void Timer::start(int64_t milliseconds) {
  stop();
  place = loop.timers.emplace(loop.clock + milliseconds, this);
  running = true;
  loop.arm();
}

void Timer::stop() {
  if (!running) return;
  running = false;
  loop.timers.erase(place);
}

}  // namespace oc::gateway
