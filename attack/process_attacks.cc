// What reaches into another process of the same user: the stand's.
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

pid_t victim(const Targets& t) { return static_cast<pid_t>(t.number("pid")); }
std::string procOf(const Targets& t, const char* what) { return "/proc/" + t["pid"] + "/" + what; }
void* addressOf(const Targets& t) { return reinterpret_cast<void*>(static_cast<uintptr_t>(t.number("address"))); }

Result trace(const Targets& t) {
  if (ptrace(PTRACE_ATTACH, victim(t), nullptr, nullptr) < 0) return held(errno);
  waitpid(victim(t), nullptr, __WALL);
  ptrace(PTRACE_DETACH, victim(t), nullptr, nullptr);
  return through();
}

Result seize(const Targets& t) {
  if (ptrace(PTRACE_SEIZE, victim(t), nullptr, nullptr) < 0) return held(errno);
  ptrace(PTRACE_INTERRUPT, victim(t), nullptr, nullptr);
  waitpid(victim(t), nullptr, __WALL);
  ptrace(PTRACE_DETACH, victim(t), nullptr, nullptr);
  return through();
}

Result readMemory(const Targets& t) {
  char here[64] = {};
  struct iovec local = {here, sizeof(here)}, remote = {addressOf(t), sizeof(here)};
  if (syscall(SYS_process_vm_readv, victim(t), &local, 1, &remote, 1, 0) < 0) return held(errno);
  return std::string(here, sizeof(here)).find(t.marker()) != std::string::npos ? through() : held();
}

// What is there already, so that nothing changes.
Result writeMemory(const Targets& t) {
  auto text = t.marker();
  struct iovec local = {text.data(), text.size()}, remote = {addressOf(t), text.size()};
  return judge(syscall(SYS_process_vm_writev, victim(t), &local, 1, &remote, 1, 0));
}

Result openMemory(const Targets& t) {
  File file(open(procOf(t, "mem").c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return held(errno);
  char here[64] = {};
  if (pread(file.get(), here, sizeof(here), t.number("address")) < 0) return held(errno);
  return std::string(here, sizeof(here)).find(t.marker()) != std::string::npos ? through() : held();
}

Result ofEach(const Targets& t, const char* what) {
  int error = ESRCH;
  for (pid_t pid : otherProcesses()) {
    auto result = readPath("/proc/" + std::to_string(pid) + "/" + what, t);
    if (result.kind == Result::Kind::Through) return result;
    if (result.error != 0) error = result.error;
  }
  return held(error);
}
Result environments(const Targets& t) { return ofEach(t, "environ"); }

Result commandLines(const Targets& t) {
  for (pid_t pid : otherProcesses()) {
    auto words = textOf("/proc/" + std::to_string(pid) + "/cmdline");
    if (words.find(t["stand"]) != std::string::npos) return through();
  }
  return held(ESRCH);
}

Result descriptors(const Targets& t) {
  int error = ESRCH;
  for (pid_t pid : otherProcesses()) {
    auto directory = "/proc/" + std::to_string(pid) + "/fd";
    if (access(directory.c_str(), R_OK) < 0) error = errno;
    for (auto& name : namesIn(directory)) {
      auto path = directory + "/" + name;
      char target[4096];
      ssize_t n = readlink(path.c_str(), target, sizeof(target));
      if (n < 0) {
        error = errno;
        continue;
      }
      if (!std::string(target, static_cast<size_t>(n)).ends_with("/secret")) continue;
      auto result = readPath(path, t);
      if (result.kind == Result::Kind::Through) return result;
    }
  }
  return held(error);
}

Result layout(const Targets& t) {
  auto maps = textOf(procOf(t, "maps"));
  if (!maps.empty()) return through();
  File file(open(procOf(t, "maps").c_str(), O_RDONLY | O_CLOEXEC));
  return held(file ? EACCES : errno);
}

Result mappedFiles(const Targets& t) {
  auto names = namesIn(procOf(t, "map_files"));
  for (auto& name : names) {
    char target[64];
    if (readlink((procOf(t, "map_files/") + name).c_str(), target, sizeof(target)) >= 0) return through();
  }
  return held(access(procOf(t, "map_files").c_str(), R_OK) < 0 ? errno : EACCES);
}

Result registers(const Targets& t) {
  File file(open(procOf(t, "syscall").c_str(), O_RDONLY | O_CLOEXEC));
  char text[256];
  return file ? judge(read(file.get(), text, sizeof(text))) : held(errno);
}

int pidfdOf(const Targets& t) { return static_cast<int>(syscall(SYS_pidfd_open, victim(t), 0)); }

Result takeDescriptor(const Targets& t) {
  File process(pidfdOf(t));
  if (!process) return held(errno);
  constexpr int pidfdGetfd = 438;
  File file(static_cast<int>(syscall(pidfdGetfd, process.get(), t.number("secret_fd"), 0)));
  if (!file) return held(errno);
  char text[256] = {};
  return pread(file.get(), text, sizeof(text) - 1, 0) > 0 && strstr(text, t.marker().c_str()) ? through() : held();
}

Result compare(const Targets& t) { return judge(syscall(SYS_kcmp, getpid(), victim(t), KCMP_FILES, 0, 0)); }

// One that is ignored unless somebody waits for it.
Result signalIt(const Targets& t) { return judge(kill(victim(t), SIGURG)); }
Result signalGroup(const Targets& t) { return judge(kill(-victim(t), SIGURG)); }
Result queueSignal(const Targets& t) {
  union sigval value = {};
  return judge(sigqueue(victim(t), SIGURG, value));
}
Result signalByPidfd(const Targets& t) {
  File process(pidfdOf(t));
  if (!process) return held(errno);
  return judge(syscall(SYS_pidfd_send_signal, process.get(), SIGURG, nullptr, 0));
}

// The kernel sends it for us, when the pipe has something to read.
Result signalByOwner(const Targets& t) {
  int pipes[2];
  if (pipe(pipes) < 0) return held(errno);
  if (fcntl(pipes[0], F_SETOWN, victim(t)) < 0) return held(errno);
  fcntl(pipes[0], F_SETSIG, t.number("owner_signal"));
  fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK);
  if (write(pipes[1], "x", 1) != 1) return held(errno);
  usleep(50'000);
  return look(t["evidence"] + "/owner");
}

Result limitIt(const Targets& t) {
  struct rlimit64 core = {0, 0};
  return judge(syscall(SYS_prlimit64, victim(t), RLIMIT_CORE, &core, nullptr));
}
Result slowIt(const Targets& t) {
  auto who = static_cast<id_t>(victim(t));
  errno = 0;
  int now = getpriority(PRIO_PROCESS, who);
  return errno != 0 ? held(errno) : judge(setpriority(PRIO_PROCESS, who, now + 1));
}
Result pinIt(const Targets& t) {
  cpu_set_t all;
  memset(&all, 0xff, sizeof(all));
  return judge(sched_setaffinity(victim(t), sizeof(all), &all));
}
Result rescheduleIt(const Targets& t) {
  struct sched_param parameters = {};
  return judge(sched_setscheduler(victim(t), SCHED_BATCH, &parameters));
}
Result slowItsDisk(const Targets& t) {
  constexpr int process = 1, bestEffort7 = (2 << 13) | 7;
  return judge(syscall(SYS_ioprio_set, process, victim(t), bestEffort7));
}
Result futexesOf(const Targets& t) {
  void* head = nullptr;
  size_t size = 0;
  return judge(syscall(SYS_get_robust_list, victim(t), &head, &size));
}
Result pagesOf(const Targets& t) {
  void* pages[1] = {addressOf(t)};
  int status[1] = {};
  return judge(syscall(SYS_move_pages, victim(t), 1UL, pages, nullptr, status, 0));
}
Result observe(const Targets& t) {
  struct perf_event_attr attributes = {};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.exclude_kernel = 1;
  File event(static_cast<int>(syscall(SYS_perf_event_open, &attributes, victim(t), -1, -1, 0)));
  return event ? through() : held(errno);
}
Result offerToTheKiller(const Targets& t) {
  File file(open(procOf(t, "oom_score_adj").c_str(), O_WRONLY | O_CLOEXEC));
  return file ? judge(write(file.get(), t["oom_score_adj"].c_str(), t["oom_score_adj"].size())) : held(errno);
}
Result forgetItsPages(const Targets& t) {
  File file(open(procOf(t, "clear_refs").c_str(), O_WRONLY | O_CLOEXEC));
  return file ? judge(write(file.get(), "1", 1)) : held(errno);
}
Result scheduleOf(const Targets& t) {
  char attributes[64] = {};
  return judge(syscall(SYS_sched_getattr, victim(t), attributes, 56, 0));
}

}  // namespace

std::vector<Attack> processAttacks() {
  return {
      {"ptrace another process", "process", trace},
      {"ptrace it without stopping it", "process", seize},
      {"process_vm_readv", "process", readMemory},
      {"process_vm_writev", "process", writeMemory},
      {"/proc/PID/mem", "process", openMemory},
      {"/proc/PID/environ", "process", environments},
      {"/proc/PID/cmdline", "process", commandLines},
      {"/proc/PID/fd", "process", descriptors},
      {"/proc/PID/maps", "process", layout},
      {"/proc/PID/map_files", "process", mappedFiles},
      {"/proc/PID/syscall", "process", registers},
      {"pidfd_getfd", "process", takeDescriptor},
      {"kcmp", "process", compare},
      {"kill", "process", signalIt},
      {"kill a process group", "process", signalGroup},
      {"sigqueue", "process", queueSignal},
      {"pidfd_send_signal", "process", signalByPidfd},
      {"a signal by a pipe's owner", "process", signalByOwner},
      {"prlimit", "process", limitIt},
      {"setpriority", "process", slowIt},
      {"sched_setaffinity", "process", pinIt},
      {"sched_setscheduler", "process", rescheduleIt},
      {"sched_getattr", "process", scheduleOf},
      {"ioprio_set", "process", slowItsDisk},
      {"get_robust_list", "process", futexesOf},
      {"move_pages", "process", pagesOf},
      {"perf_event_open on a process", "process", observe},
      {"/proc/PID/oom_score_adj", "process", offerToTheKiller},
      {"/proc/PID/clear_refs", "process", forgetItsPages},
  };
}

}  // namespace oc::battery
