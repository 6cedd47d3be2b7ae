#include "namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/error.h"
#include "base/fd.h"
#include "base/paths.h"

namespace oc::kit {

namespace {

// Why a wanted protection is missing: noted, and the instance goes on. A required one stops it.
void missing(Need need, Protections& protections, const std::string& what, int error) {
  auto text = fmt::format("{}: {}", what, strerror(error));
  if (need == Need::Required) fail("this machine does not grant a protection that is needed: " + text);
  protections.missing.push_back(text);
}

void writeMap(const char* path, const std::string& text) {
  auto fd = openFile(path, O_WRONLY);
  writeAll(fd.get(), text);
}

bool enterUserNamespace(const Profile& profile, Protections& protections) {
  if (profile.userNamespace == Need::No) return false;
  auto uid = geteuid();
  auto gid = getegid();
  if (unshare(CLONE_NEWUSER) < 0) {
    missing(profile.userNamespace, protections, "user namespace (unshare)", errno);
    return false;
  }
  // The maps need a dumpable process: PR_SET_DUMPABLE comes later, and nothing secret is in memory yet.
  writeMap("/proc/self/setgroups", "deny");
  writeMap("/proc/self/uid_map", fmt::format("{} {} 1", uid, uid));
  writeMap("/proc/self/gid_map", fmt::format("{} {} 1", gid, gid));
  protections.userNamespace = true;
  return true;
}

void enter(Need need, int flag, const char* what, bool& entered, bool haveUser, Protections& protections) {
  if (need == Need::No) return;
  if (!haveUser) {
    missing(need, protections, what, EPERM);
    return;
  }
  if (unshare(flag) < 0) {
    missing(need, protections, what, errno);
    return;
  }
  entered = true;
}

// After unshare(CLONE_NEWPID): only a child is in the new namespace. It becomes a child of our parent, which watches
// it.
void becomeFirstProcess(void (*onServing)(pid_t)) {
  auto gate = makePipe();
  long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) KJ_FAIL_SYSCALL("clone", errno);
  if (pid > 0) {
    onServing(static_cast<pid_t>(pid));
    _exit(0);
  }
  // Wait until the parent has announced us: what we say next must come after.
  gate.second = nullptr;
  char nothing;
  KJ_SYSCALL(::read(gate.first.get(), &nothing, 1));
}

struct Kept {
  std::string path;
  kj::AutoCloseFd fd;
  mode_t kind;             // S_IFDIR, S_IFLNK, …
  std::string linkTarget;  // of a symbolic link
};

std::string targetOf(int link) {
  char target[PATH_MAX];
  ssize_t size;
  KJ_SYSCALL(size = readlinkat(link, "", target, sizeof(target)));
  return {target, static_cast<size_t>(size)};
}

bool wasHidden(const std::string& path, const std::vector<std::string>& hidden) {
  return std::any_of(hidden.begin(), hidden.end(), [&path](auto& directory) { return isAtOrUnder(path, directory); });
}

// Without repetitions, and without what lies under another.
std::vector<std::string> outermost(std::vector<std::string> paths) {
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> result;
  for (auto& path : paths) {
    if (!wasHidden(path, result)) result.push_back(path);
  }
  return result;
}

void mountScratch(const std::string& path, const std::vector<std::string>& hidden) {
  if (path.empty()) return;
  if (wasHidden(path, hidden)) makeDirectories(path, 0755);
  KJ_SYSCALL(
      mount("none", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=16m,nr_inodes=4096,mode=0700"),
      path);
}

// In the empty file system that lies over it now. A link becomes one again: what it names is there or is kept by
// itself, and a mount over a link could not be told from one that went wrong.
void putBack(const Kept& one) {
  if (one.kind == S_IFDIR) {
    makeDirectories(one.path, 0755);
  } else {
    makeDirectories(one.path.substr(0, one.path.rfind('/')), 0755);
    if (one.kind == S_IFLNK) {
      KJ_SYSCALL(symlink(one.linkTarget.c_str(), one.path.c_str()), one.path);
      return;
    }
    openFile(one.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  }
  auto source = fmt::format("/proc/self/fd/{}", one.fd.get());
  KJ_SYSCALL(mount(source.c_str(), one.path.c_str(), nullptr, MS_BIND | MS_REC, nullptr), one.path);
}

// Hidden directories become empty, read-only file systems, but for what is kept.
void hideDirectories(const std::vector<std::string>& allHidden, const std::vector<std::string>& allKept,
                     const std::string& scratch) {
  auto hidden = outermost(allHidden);
  auto keptPaths = outermost(allKept);
  std::vector<Kept> kept;
  for (auto& path : keptPaths) {
    if (!wasHidden(path, hidden)) continue;
    auto fd = openFile(path, O_PATH | O_NOFOLLOW);
    struct stat stats;
    KJ_SYSCALL(fstat(fd.get(), &stats), path);
    auto target = S_ISLNK(stats.st_mode) ? targetOf(fd.get()) : std::string();
    kept.push_back({path, kj::mv(fd), stats.st_mode & S_IFMT, target});
  }
  std::vector<std::string> covered;
  for (auto& path : hidden) {
    struct stat stats;
    if (stat(path.c_str(), &stats) < 0 && (errno == ENOENT || errno == EACCES))
      continue;  // also: under one that is covered
    KJ_SYSCALL(
        mount("none", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,nr_inodes=512,mode=0755"),
        path);
    covered.push_back(path);
  }
  for (auto& one : kept) putBack(one);
  mountScratch(scratch, hidden);
  for (auto& path : covered) {
    if (path == scratch) continue;  // the writable one lies over it
    KJ_SYSCALL(mount(nullptr, path.c_str(), nullptr,
                     MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr),
               path);
  }
}

void arrangeMounts(const Profile& profile, Protections& protections) {
  if (!protections.mountNamespace) return;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) {
    // Where AppArmor restricts user namespaces, unshare succeeds and this fails.
    protections.mountNamespace = false;
    missing(profile.mountNamespace, protections, "mount namespace (mount)", errno);
    return;
  }
  hideDirectories(profile.hidden, profile.kept, profile.scratch);
  if (profile.freshProc && protections.pidNamespace) {
    KJ_SYSCALL(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
  }
}

}  // namespace

void enterNamespaces(const Profile& profile, Protections& protections, void (*onServing)(pid_t)) {
  bool haveUser = enterUserNamespace(profile, protections);
  enter(profile.mountNamespace, CLONE_NEWNS, "mount namespace", protections.mountNamespace, haveUser, protections);
  enter(profile.networkNamespace, CLONE_NEWNET, "network namespace", protections.networkNamespace, haveUser,
        protections);
  enter(profile.ipcNamespace, CLONE_NEWIPC, "ipc namespace", protections.ipcNamespace, haveUser, protections);
  enter(profile.pidNamespace, CLONE_NEWPID, "pid namespace", protections.pidNamespace, haveUser, protections);
  if (protections.pidNamespace) {
    becomeFirstProcess(onServing);
  } else {
    onServing(getpid());
  }
  arrangeMounts(profile, protections);
}

}  // namespace oc::kit
