// Wide interfaces of the kernel that no work needs, terminals, and programs that gain privileges.
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

Result opened(long fd) {
  if (fd < 0) return held(errno);
  close(static_cast<int>(fd));
  return through();
}

// A map, which ordinary users may make where the kernel's setting lets them.
Result bpfMap(const Targets&) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof(attributes));
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 8;
  attributes.max_entries = 1;
  return opened(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)));
}
Result faults(const Targets&) {
  constexpr int userModeOnly = 1;
  return opened(syscall(SYS_userfaultfd, O_CLOEXEC | userModeOnly));
}
Result ring(const Targets&) {
  constexpr int setup = 425;
  char parameters[512] = {};
  return opened(syscall(setup, 1, parameters));
}
Result measure(const Targets&) {
  struct perf_event_attr attributes = {};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.exclude_kernel = 1;
  return opened(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}
Result kernelLog(const Targets&) {
  constexpr int readAll = 3;
  char text[4096];
  return judge(klogctl(readAll, text, sizeof(text)));
}
Result hypervisor(const Targets&) { return opened(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

// Outside the control has a terminal of its own.
Result terminal(const Targets&) { return opened(open("/dev/tty", O_RDWR | O_CLOEXEC)); }
Result typeIntoTerminal(const Targets&) {
  char key = ' ';
  for (int fd = 0; fd < 3; ++fd) {
    if (ioctl(fd, TIOCSTI, &key) == 0) return through();
    if (errno != ENOTTY) return held(errno);
  }
  File tty(open("/dev/tty", O_RDWR | O_CLOEXEC));
  return tty ? judge(ioctl(tty.get(), TIOCSTI, &key)) : held(errno);
}
Result writeTerminal(const Targets& t) {
  if (!t.has("pts")) return absent();
  File tty(open(t["pts"].c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  return tty ? judge(write(tty.get(), "attack", 6)) : held(errno);
}

// The dynamic linker obeys LD_SHOW_AUXV unless the program was given more privileges than who started it.
Result gainPrivileges(const Targets&) {
  std::string program;
  for (auto path : {"/usr/bin/su", "/bin/su", "/usr/bin/passwd", "/usr/bin/newgrp", "/usr/bin/mount", "/bin/mount"}) {
    struct stat stats;
    if (stat(path, &stats) == 0 && (stats.st_mode & S_ISUID) != 0) {
      program = path;
      break;
    }
  }
  if (program.empty()) return absent();
  int pipes[2];
  if (pipe(pipes) < 0) return held(errno);
  pid_t child = fork();
  if (child < 0) return held(errno);
  if (child == 0) {
    dup2(pipes[1], STDOUT_FILENO);
    dup2(pipes[1], STDERR_FILENO);
    char* const words[] = {program.data(), const_cast<char*>("--version"), nullptr};
    char* const variables[] = {const_cast<char*>("LD_SHOW_AUXV=1"), nullptr};
    execve(program.c_str(), words, variables);
    _exit(126);
  }
  close(pipes[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(pipes[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(pipes[0]);
  int status;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 126) return held(EACCES);
  return text.find("AT_SECURE") == std::string::npos ? through() : held(EPERM);
}

}  // namespace

std::vector<Attack> kernelAttacks() {
  return {
      {"bpf", "kernel", bpfMap},
      {"userfaultfd", "kernel", faults},
      {"io_uring", "kernel", ring},
      {"perf_event_open", "kernel", measure},
      {"the kernel's log", "kernel", kernelLog},
      {"a socket to the hypervisor", "kernel", hypervisor},
      {"open the terminal", "terminal", terminal},
      {"type into the terminal", "terminal", typeIntoTerminal},
      {"write to another terminal", "terminal", writeTerminal},
      {"gain privileges by a setuid program", "kernel", gainPrivileges},
  };
}

}  // namespace oc::battery
