#include "child.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/log.h"

namespace oc::gateway {

namespace {

constexpr int passedOn[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH, SIGUSR1, SIGUSR2};

// Laid out before the fork: what comes after it only calls the system.
struct Layout {
  std::vector<char*> arguments, environment;

  explicit Layout(const Child::Image& image) {
    auto add = [](std::vector<char*>& list, const std::string& text) {
      list.push_back(const_cast<char*>(text.c_str()));
    };
    auto* start = image.start;
    auto* secrets = image.secrets;
    for (auto& word : image.command) add(arguments, word);
    for (auto entry = environ; *entry != nullptr; ++entry) {
      bool replaced = (start != nullptr && start->replaces(*entry)) || (secrets != nullptr && secrets->replace(*entry));
      if (!replaced) environment.push_back(*entry);
    }
    if (start != nullptr) {
      for (auto& variable : start->environment()) {
        if (secrets == nullptr || !secrets->replace(variable)) add(environment, variable);
      }
    }
    if (secrets != nullptr) {
      environment.insert(environment.end(), secrets->variables().begin(), secrets->variables().end());
    }
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
  }
};

void takeTerminalOrLeaveIt(bool terminal) {
  if (!terminal) {
    setsid();
    return;
  }
  // SIGTTOU is blocked still: a background process may then do this.
  setpgid(0, 0);
  tcsetpgrp(STDIN_FILENO, getpid());
}

void setSignalsToDefault() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void execute(const Layout& image, bool terminal) {
  takeTerminalOrLeaveIt(terminal);
  setSignalsToDefault();
  execvpe(image.arguments[0], image.arguments.data(), image.environment.data());
  int error = errno;
  logError("can't execute {}: {}", image.arguments[0], strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

int codeOf(const siginfo_t& info) { return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status; }

}  // namespace

kj::AutoCloseFd takeSignals() {
  sigset_t all, watched;
  sigfillset(&all);
  KJ_SYSCALL(sigprocmask(SIG_SETMASK, &all, nullptr));
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (int number : passedOn) sigaddset(&watched, number);
  int fd;
  KJ_SYSCALL(fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  return kj::AutoCloseFd(fd);
}

Child::Child(Loop& loop, int signals, const Image& what)
    : loop(loop), signals(signals), terminal(isatty(STDIN_FILENO)) {
  Layout image(what);
  KJ_SYSCALL(pid = fork());
  if (pid == 0) execute(image, terminal);
  // Here as well, so that a signal that comes at once finds the group.
  if (terminal) setpgid(pid, pid);
  loop.watch(signals, *this);
  ready(0);
}

Child::~Child() { loop.unwatch(signals, *this); }

void Child::ready(uint32_t) {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof(info)) == sizeof(info)) {
    // To the whole group: a shell would keep it from what it runs. Before the child has made its group, to it alone.
    int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD || over) continue;
    if (kill(-pid, number) < 0) kill(pid, number);
  }
  reap();
  if (terminal) bringBack();
}

void Child::reap() {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0) return;
    if (info.si_pid != pid) continue;
    over = true;
    code = codeOf(info);
  }
}

void Child::bringBack() {
  siginfo_t info{};
  if (over || waitid(P_PID, pid, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid != pid) return;
  kill(-pid, SIGCONT);
}

void endAllOthers() {
  // Again, since one that was being forked may have been missed.
  do {
    kill(-1, SIGKILL);
  } while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
}

}  // namespace oc::gateway
