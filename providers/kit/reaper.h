// The ends of all of this process's children: those that it started, and the orphans that come to a pid namespace's
// first process or to a subreaper.
#pragma once

#include <kj/async-unix.h>
#include <sys/types.h>

#include <map>
#include <vector>

#include "base/watch.h"

namespace oc::kit {

class Reaper final : private kj::TaskSet::ErrorHandler {
 public:
  // One a process. Takes SIGCHLD.
  explicit Reaper(kj::UnixEventPort& port);

  // Of a child that was started just now: call it before the event loop runs again.
  kj::Promise<ProcessEnd> whenEnded(pid_t child);
  // Resolves when this process has no child left, and calls `again` for each that ended until then: it may have left
  // children of its own.
  kj::Promise<void> whenChildless(kj::Function<void()> again);

 private:
  struct Waiting {
    kj::Own<kj::PromiseFulfiller<void>> fulfiller;
    kj::Function<void()> again;
  };

  kj::Promise<void> watch();
  void reap();
  void taskFailed(kj::Exception&& exception) override;

  kj::UnixEventPort& port;
  std::map<pid_t, kj::Own<kj::PromiseFulfiller<ProcessEnd>>> known;
  std::vector<Waiting> waiting;
  kj::TaskSet tasks;
};

}  // namespace oc::kit
