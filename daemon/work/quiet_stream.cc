#include "quiet_stream.h"

#include <poll.h>

#include "base/error.h"
#include "base/log.h"
#include "proto/rpc.h"

namespace oc::work {

bool isQuiet(int fd) {
  struct pollfd stream {
    fd, POLLIN, 0
  };
  return poll(&stream, 1, 0) == 0;
}

QuietStream::QuietStream(kj::UnixEventPort& port, int fd, kj::TaskSet& tasks, std::function<void()> spoke)
    : observer(kj::heap<kj::UnixEventPort::FdObserver>(port, fd, kj::UnixEventPort::FdObserver::OBSERVE_READ)),
      // Not from there: what is called may take this, and with it the promise that calls.
      watching(observer->whenBecomesReadable()
                   .then([&tasks, spoke]() { tasks.add(kj::evalLater([spoke]() { spoke(); })); })
                   .eagerlyEvaluate([](kj::Exception&& e) { logError("{}", describe(e)); })) {}

void QuietStream::stop() {
  watching = nullptr;
  observer = nullptr;
}

}  // namespace oc::work
