#include "tree.h"

#include <errno.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/procfs.h"
#include "base/spawn.h"

namespace oc::host {

namespace {

struct Target {
  pid_t pid;
  kj::AutoCloseFd pidfd;
};

// Every process beneath us, held by a pidfd that is known to be its own: after the pidfd was opened the number still
// names a process beneath us.
std::vector<Target> holdDescendants() {
  std::vector<Target> held;
  for (pid_t pid : descendants(getpid())) {
    int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd >= 0) {
      held.push_back({pid, kj::AutoCloseFd(fd)});
    } else if (errno != ESRCH) {
      KJ_FAIL_SYSCALL("pidfd_open", errno, pid);
    }
  }
  auto still = descendants(getpid());
  std::set<pid_t> present(still.begin(), still.end());
  held.erase(std::remove_if(held.begin(), held.end(), [&present](auto& one) { return present.count(one.pid) == 0; }),
             held.end());
  return held;
}

}  // namespace

void signalDescendants(int signal) {
  for (auto& target : holdDescendants()) sendSignal(target.pidfd.get(), signal);
}

void killDescendants() {
  // A process that forks faster than we look is caught by looking again: each round stops all that it saw. The bound
  // only keeps us from looking forever; who calls us comes back at the next child's end.
  std::set<pid_t> stopped;
  for (int round = 0; round < 50; ++round) {
    auto targets = holdDescendants();
    bool grew = false;
    for (auto& target : targets) {
      sendSignal(target.pidfd.get(), SIGSTOP);
      grew = stopped.insert(target.pid).second || grew;
    }
    if (grew) continue;
    for (auto& target : targets) sendSignal(target.pidfd.get(), SIGKILL);
    return;
  }
  signalDescendants(SIGKILL);
}

}  // namespace oc::host
