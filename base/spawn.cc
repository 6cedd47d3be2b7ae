#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "error.h"
#include "fd.h"

namespace oc {

namespace {

// What the child needs, laid out before the fork: after it only system calls are allowed.
struct Image {
  std::vector<char*> argv, envp;
  std::vector<std::string> environment;
  std::vector<std::pair<int, int>> descriptors;
  std::vector<kj::AutoCloseFd> groups;
  int highest = 2;
  int devNull = -1;
  int report = -1;
};

struct Failure {
  int error;
  char step[24];
};

[[noreturn]] void failInChild(const Image& image, const char* step) {
  Failure failure{errno, {}};
  strncpy(failure.step, step, sizeof(failure.step) - 1);
  ssize_t ignored = write(image.report, &failure, sizeof(failure));
  (void)ignored;
  _exit(127);
}

void resetSignals(const Image& image) {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP || (signal >= 32 && signal < SIGRTMIN)) continue;
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    if (sigaction(signal, &action, nullptr) < 0 && errno != EINVAL) failInChild(image, "sigaction");
  }
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, nullptr) < 0) failInChild(image, "sigprocmask");
}

// While their descriptors still are where they were.
void enterControlGroups(const Image& image) {
  for (auto& group : image.groups) {
    if (write(group.get(), "0", 1) != 1) failInChild(image, "write(cgroup.procs)");
  }
}

// Moves everything above the highest target first, so that no dup2 overwrites a source that is still needed.
void placeDescriptors(Image& image) {
  int above = image.highest + 1;
  if ((image.report = fcntl(image.report, F_DUPFD_CLOEXEC, above)) < 0) _exit(127);
  if ((image.devNull = fcntl(image.devNull, F_DUPFD_CLOEXEC, above)) < 0) failInChild(image, "fcntl(dup)");
  for (auto& [ours, theirs] : image.descriptors) {
    int moved = fcntl(ours, F_DUPFD_CLOEXEC, above);
    if (moved < 0) failInChild(image, "fcntl(dup)");
    ours = moved;
  }
  for (int fd = 0; fd <= 2; ++fd) {
    if (dup2(image.devNull, fd) < 0) failInChild(image, "dup2");
  }
  for (auto [ours, theirs] : image.descriptors) {
    if (dup2(ours, theirs) < 0) failInChild(image, "dup2");
  }
  // Holes between the targets are ours still; close whatever was not listed.
  for (int fd = 3; fd <= image.highest; ++fd) {
    bool listed = false;
    for (auto [ours, theirs] : image.descriptors) listed = listed || theirs == fd;
    if (!listed) close(fd);
  }
  if (syscall(SYS_close_range, above, ~0u, CLOSE_RANGE_CLOEXEC) < 0) failInChild(image, "close_range");
}

[[noreturn]] void becomeProgram(const SpawnSpec& spec, Image& image, pid_t parent) {
  resetSignals(image);
  enterControlGroups(image);
  placeDescriptors(image);
  if (spec.newSession && setsid() < 0) failInChild(image, "setsid");
  if (spec.dieWithParent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) failInChild(image, "prctl(pdeathsig)");
    if (getppid() != parent) _exit(127);  // it died before the call above
  }
  if (spec.noNewPrivs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) failInChild(image, "prctl(no_new_privs)");
  if (chdir(spec.directory.c_str()) < 0) failInChild(image, "chdir");
  execve(spec.program.c_str(), image.argv.data(), image.envp.data());
  failInChild(image, "execve");
}

Image layOut(const SpawnSpec& spec, std::string& name) {
  Image image;
  name = spec.program.substr(spec.program.rfind('/') + 1);
  image.argv.push_back(name.data());
  for (auto& argument : spec.arguments) image.argv.push_back(const_cast<char*>(argument.c_str()));
  image.argv.push_back(nullptr);
  for (auto& [key, value] : spec.environment) image.environment.push_back(key + "=" + value);
  for (auto& entry : image.environment) image.envp.push_back(entry.data());
  image.envp.push_back(nullptr);
  image.descriptors = spec.descriptors;
  for (auto& folder : spec.controlGroups) image.groups.push_back(openFile(folder + "/cgroup.procs", O_WRONLY));
  for (auto [ours, theirs] : image.descriptors) image.highest = std::max(image.highest, theirs);
  return image;
}

}  // namespace

Spawned spawn(const SpawnSpec& spec) {
  KJ_REQUIRE(!spec.program.empty() && spec.program[0] == '/', "not an absolute path", spec.program.c_str());
  std::string name;
  auto image = layOut(spec, name);
  auto devNull = openFile("/dev/null", O_RDWR);
  auto report = makePipe();
  image.devNull = devNull.get();
  image.report = report.second.get();
  pid_t parent = getpid();

  // Signals are blocked over the fork: a handler of ours must not run in the child.
  sigset_t all, before;
  sigfillset(&all);
  KJ_SYSCALL(sigprocmask(SIG_BLOCK, &all, &before));
  pid_t pid = fork();
  int forkError = errno;
  if (pid == 0) becomeProgram(spec, image, parent);
  KJ_SYSCALL(sigprocmask(SIG_SETMASK, &before, nullptr));
  if (pid < 0) KJ_FAIL_SYSCALL("fork", forkError, spec.program.c_str());
  report.second = nullptr;

  bool reaped = false;
  KJ_ON_SCOPE_FAILURE(if (!reaped) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  });
  auto pidfd = openPidfd(pid);  // our child: the number cannot be another's before we wait for it

  // The pipe closes at the exec; until then it brings the failed step.
  Failure failure;
  ssize_t n;
  KJ_SYSCALL(n = read(report.first.get(), &failure, sizeof(failure)));
  if (n != 0) {
    waitpid(pid, nullptr, 0);
    reaped = true;
    if (n != sizeof(failure)) fail(spec.program + " cannot be started: the child died before it could say why");
    failure.step[sizeof(failure.step) - 1] = '\0';
    fail(fmt::format("{} cannot be started: {}: {}", spec.program, failure.step, strerror(failure.error)));
  }
  return {pid, kj::mv(pidfd)};
}

kj::AutoCloseFd openPidfd(pid_t pid) {
  int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) KJ_FAIL_SYSCALL("pidfd_open", errno, pid);
  return kj::AutoCloseFd(fd);
}

bool sendSignal(int pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0) return true;
  if (errno != ESRCH) KJ_FAIL_SYSCALL("pidfd_send_signal", errno);
  return false;
}

}  // namespace oc
