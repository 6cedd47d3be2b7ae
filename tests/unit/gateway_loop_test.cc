#include "gateway/loop.h"

#include <kj/async-io.h>
#include <sys/eventfd.h>

#include "gateway/channel.h"
#include "tests/catch.h"

using namespace oc::gateway;

namespace {

struct Counted final : Watcher {
  explicit Counted(Loop& loop) : loop(loop), fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { loop.watch(fd, *this); }
  ~Counted() { loop.unwatch(fd, *this); }
  void ready(uint32_t events) override { told += events != 0; }

  Loop& loop;
  kj::AutoCloseFd fd;
  int told = 0;
};

}  // namespace

TEST_CASE("more sockets than one turn handles are all told, though nothing else happens") {
  auto io = kj::setupAsyncIo();
  Loop loop;
  kj::UnixEventPort::FdObserver observer(io.unixEventPort, loop.descriptor(),
                                         kj::UnixEventPort::FdObserver::OBSERVE_READ);
  std::vector<std::unique_ptr<Counted>> watchers;
  // Writable from the start, so all of them are ready at once, and before the alarm is. A turn has 512.
  for (int i = 0; i < 900; ++i) watchers.push_back(std::make_unique<Counted>(loop));
  loop.again(*watchers[0]);
  auto driven = drive(loop, observer).eagerlyEvaluate(nullptr);
  auto waiting = [&]() {
    return std::count_if(watchers.begin(), watchers.end(), [](auto& w) { return w->told == 0; });
  };
  for (int i = 0; i < 200 && waiting() > 0; ++i) {
    io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(io.waitScope);
  }
  CHECK(waiting() == 0);
}
