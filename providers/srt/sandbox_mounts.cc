#include "sandbox_mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>

namespace oc::srt {

namespace {

// ioctl_ns(2); linux/nsfs.h.
constexpr unsigned long nsGetUserNamespace = _IO(0xb7, 0x1);

struct Sandbox {
  kj::AutoCloseFd mounts, user;
};

struct Exposed {
  const char* path;
  dev_t device;
  ino_t inode;
  bool isDirectory;
};

// The mount namespaces of this pid namespace, but for our own, by their identity.
std::map<ino_t, Sandbox> findSandboxes() {
  std::map<ino_t, Sandbox> found;
  struct stat own;
  KJ_SYSCALL(stat("/proc/self/ns/mnt", &own));
  DIR* proc = opendir("/proc");
  KJ_REQUIRE(proc != nullptr, "/proc cannot be read");
  KJ_DEFER(closedir(proc));
  while (struct dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    int fd = open(fmt::format("/proc/{}/ns/mnt", entry->d_name).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;  // it has ended, or is about to
    kj::AutoCloseFd mounts(fd);
    struct stat stats;
    if (fstat(fd, &stats) < 0 || stats.st_ino == own.st_ino || found.count(stats.st_ino) > 0) continue;
    int user = ioctl(fd, nsGetUserNamespace);
    if (user < 0) KJ_FAIL_SYSCALL("ioctl(NS_GET_USERNS)", errno);
    found.emplace(stats.st_ino, Sandbox{kj::mv(mounts), kj::AutoCloseFd(user)});
  }
  return found;
}

// What the child below says; errno values are below it.
constexpr int someCovered = 200;

// In a child of its own, since there is no way back from a user namespace. Only system calls here.
[[noreturn]] void coverInside(const Sandbox& sandbox, const std::vector<Exposed>& exposed) {
  if (setns(sandbox.user.get(), CLONE_NEWUSER) < 0) _exit(errno);
  if (setns(sandbox.mounts.get(), CLONE_NEWNS) < 0) _exit(errno);
  int result = 0;
  for (auto& one : exposed) {
    struct stat stats;
    if (stat(one.path, &stats) < 0) continue;
    if (stats.st_dev != one.device || stats.st_ino != one.inode) continue;
    int mounted = one.isDirectory ? mount("none", one.path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY,
                                          "size=4k,nr_inodes=2,mode=0755")
                                  : mount("/dev/null", one.path, nullptr, MS_BIND, nullptr);
    if (mounted < 0 && errno != ENOENT) _exit(errno);
    if (mounted == 0) result = someCovered;
  }
  _exit(result);
}

void cover(const Sandbox& sandbox, const std::vector<Exposed>& exposed, Covering& covering) {
  pid_t child = fork();
  if (child < 0) KJ_FAIL_SYSCALL("fork", errno);
  if (child == 0) coverInside(sandbox, exposed);
  int status;
  KJ_SYSCALL(waitpid(child, &status, 0));
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  if (code == someCovered) {
    ++covering.covered;
  } else if (code != 0) {
    covering.failure = fmt::format("{} came to be and could not be hidden: {}", exposed[0].path, strerror(code));
  }
}

}  // namespace

Covering coverInSandboxes(const std::vector<std::string>& paths) {
  std::vector<Exposed> exposed;
  for (auto& path : paths) {
    struct stat stats;
    if (stat(path.c_str(), &stats) < 0) continue;
    exposed.push_back({path.c_str(), stats.st_dev, stats.st_ino, S_ISDIR(stats.st_mode)});
  }
  Covering result;
  auto sandboxes = findSandboxes();
  result.sandboxes = sandboxes.size();
  if (exposed.empty()) return result;
  for (auto& [inode, sandbox] : sandboxes) cover(sandbox, exposed, result);
  return result;
}

}  // namespace oc::srt
