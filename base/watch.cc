#include "watch.h"

#include <errno.h>
#include <kj/debug.h>
#include <sys/wait.h>

namespace oc {

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace {

ProcessEnd reap(int pidfd) {
  siginfo_t info{};
  ProcessEnd end;
  if (waitid(static_cast<idtype_t>(P_PIDFD), pidfd, &info, WEXITED | WNOHANG) < 0) {
    if (errno == ECHILD) return end;  // not ours: an adopted process, or reaped elsewhere
    KJ_FAIL_SYSCALL("waitid", errno);
  }
  if (info.si_pid == 0) return end;
  end.known = true;
  end.signaled = info.si_code != CLD_EXITED;
  end.code = info.si_status;
  return end;
}

}  // namespace

kj::Promise<ProcessEnd> whenEnded(kj::UnixEventPort& port, int pidfd) {
  auto observer = kj::heap<kj::UnixEventPort::FdObserver>(port, pidfd, kj::UnixEventPort::FdObserver::OBSERVE_READ);
  auto readable = observer->whenBecomesReadable();
  return readable.then([pidfd]() { return reap(pidfd); }).attach(kj::mv(observer));
}

}  // namespace oc
