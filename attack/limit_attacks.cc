// More than a limit, where there is one that can be tried without harm to the machine.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

Result processes(const Targets& t) {
  if (!t.has("pids")) return absent();
  std::vector<pid_t> children;
  int error = 0;
  for (long i = 0; i < t.number("pids") + 16 && error == 0; ++i) {
    pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    if (child < 0)
      error = errno;
    else
      children.push_back(child);
  }
  for (pid_t child : children) kill(child, SIGKILL);
  for (pid_t child : children) waitpid(child, nullptr, 0);
  return error == 0 ? through() : held(error);
}

Result memory(const Targets& t) {
  if (!t.has("memory")) return absent();
  pid_t child = fork();
  if (child < 0) return held(errno);
  if (child == 0) {
    size_t size = static_cast<size_t>(t.number("memory")) + (32u << 20);
    void* all = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) _exit(1);
    memset(all, 1, size);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? through() : held(ENOMEM);
}

// The groups' files belong to the agent's user. In a namespace of its own an agent can mount what lies beneath its own
// group.
Result raiseThem(const Targets& t) {
  if (!t.has("memory")) return absent();
  if (int error = ownNamespaces()) return held(error);
  if (unshare(CLONE_NEWCGROUP) < 0) return held(errno);
  auto place = t["workspace"] + "/attack-groups";
  mkdir(place.c_str(), 0700);
  for (auto [type, options] : {std::pair("cgroup", "memory"), std::pair("cgroup2", "")}) {
    if (mount("none", place.c_str(), type, 0, options) < 0) continue;
    for (auto file : {"/memory.memsw.limit_in_bytes", "/memory.limit_in_bytes", "/memory.max"}) {
      File limit(open((place + file).c_str(), O_WRONLY | O_CLOEXEC));
      if (limit) (void)!write(limit.get(), "8589934592", 10);
    }
  }
  return memory(t);
}

}  // namespace

std::vector<Attack> limitAttacks() {
  return {
      {"more processes than the limit", "limit", processes},
      {"more memory than the limit", "limit", memory},
      {"raise one's own limits in a namespace", "limit", raiseThem},
  };
}

}  // namespace oc::battery
