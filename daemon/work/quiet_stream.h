// The stream of something that was made ahead and waits to be used. It says nothing unasked: whatever can be read of
// it, an end most likely, means that it is of no use.
#pragma once

#include <kj/async-unix.h>

#include <functional>

namespace oc::work {

// Whether nothing can be read of it so far, not even an end.
bool isQuiet(int fd);

class QuietStream {
 public:
  // Watches `fd`, of which nothing is read. `spoke` is called at most once, and by `tasks`, so that it may destroy
  // this; where the stream spoke just then, after stop(), too: it looks whether its thing still waits.
  QuietStream(kj::UnixEventPort& port, int fd, kj::TaskSet& tasks, std::function<void()> spoke);

  // Before the descriptor is closed or read by somebody else.
  void stop();

 private:
  kj::Own<kj::UnixEventPort::FdObserver> observer;
  kj::Promise<void> watching;
};

}  // namespace oc::work
