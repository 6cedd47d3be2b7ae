#include "tree_remover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "task.h"

namespace oc::git {

namespace {

constexpr size_t entriesPerStep = 2000;
constexpr size_t deepest = 200;  // descriptors that are held at once; a provider may have 1,024

}  // namespace

TreeRemover::TreeRemover(std::string path, bool keepRoot) : path(std::move(path)), keepRoot(keepRoot) {}

bool TreeRemover::step() {
  if (!started) {
    started = true;
    openRoot();
  }
  for (budget = entriesPerStep; budget > 0 && !levels.empty(); --budget) {
    auto& level = levels.back();
    if (!level.listed) deleteFilesOf(level);
    if (!level.listed) continue;
    if (level.entries.empty()) {
      leave();
      continue;
    }
    auto name = std::move(level.entries.back());
    level.entries.pop_back();
    if (levels.size() >= deepest) {
      moveUp(name);
    } else {
      enter(name);
    }
  }
  return levels.empty();
}

void TreeRemover::openRoot() {
  struct stat stats;
  if (lstat(path.c_str(), &stats) < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    KJ_FAIL_SYSCALL("lstat", errno, path);
  }
  KJ_REQUIRE(S_ISDIR(stats.st_mode), "not a directory", path);
  levels.push_back({openInner(AT_FDCWD, path), path, {}, false});
}

// Opened first and changed through the descriptor: a name could be swapped for a link in between.
kj::AutoCloseFd TreeRemover::openInner(int parent, const std::string& name) {
  int fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) {
    int closed = openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (closed < 0) KJ_FAIL_SYSCALL("open", errno, name);
    kj::AutoCloseFd owned(closed);
    KJ_SYSCALL(chmod(fmt::format("/proc/self/fd/{}", closed).c_str(), 0700), name);
    fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  if (fd < 0) KJ_FAIL_SYSCALL("open", errno, name);
  kj::AutoCloseFd owned(fd);
  struct stat stats;
  KJ_SYSCALL(fstat(fd, &stats), name);
  bool open = (stats.st_mode & 0700) == 0700;
  if (!open) {
    KJ_SYSCALL(fchmod(fd, 0700), name);
  }
  return owned;
}

void TreeRemover::enter(const std::string& name) {
  levels.push_back({openInner(levels.back().directory.get(), name), name, {}, false});
}

void TreeRemover::leave() {
  auto name = std::move(levels.back().name);
  levels.pop_back();
  if (!levels.empty()) {
    KJ_SYSCALL(unlinkat(levels.back().directory.get(), name.c_str(), AT_REMOVEDIR), name);
  } else if (!keepRoot) {
    KJ_SYSCALL(rmdir(path.c_str()), path);
  }
}

void TreeRemover::deleteFilesOf(Level& level) {
  int copy;
  KJ_SYSCALL(copy = openat(level.directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), level.name);
  DIR* listing = fdopendir(copy);
  if (listing == nullptr) {
    int error = errno;
    close(copy);
    KJ_FAIL_SYSCALL("fdopendir", error, level.name);
  }
  KJ_DEFER(closedir(listing));
  // One step's worth: a directory with a million files is read in many.
  for (size_t seen = 0;;) {
    errno = 0;
    struct dirent* entry = readdir(listing);
    if (entry == nullptr) {
      if (errno != 0) KJ_FAIL_SYSCALL("readdir", errno, level.name);
      level.listed = true;
      return;
    }
    const char* name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
    if (unlinkat(level.directory.get(), name, 0) == 0 || errno == ENOENT) {
      if (++seen == entriesPerStep) {
        budget = 1;
        level.entries.clear();  // listed anew
        return;
      }
      continue;
    }
    // Linux says EISDIR, POSIX allows EPERM.
    if (errno != EISDIR && errno != EPERM) KJ_FAIL_SYSCALL("unlink", errno, name);
    level.entries.push_back(name);
  }
}

// To the root under a name of its own; its turn comes when the root is listed again.
void TreeRemover::moveUp(const std::string& name) {
  auto& root = levels.front();
  // Renaming a directory into another one writes its "..": it must be open to its owner.
  openInner(levels.back().directory.get(), name);
  constexpr unsigned noReplace = 1;  // RENAME_NOREPLACE: the tree's maker may have taken such a name
  for (;;) {
    auto to = fmt::format(".open-conduit-removed-{}", movedUp++);
    if (syscall(SYS_renameat2, levels.back().directory.get(), name.c_str(), root.directory.get(), to.c_str(),
                noReplace) == 0) {
      root.entries.insert(root.entries.begin(), to);
      return;
    }
    if (errno != EEXIST) KJ_FAIL_SYSCALL("rename", errno, name);
  }
}

kj::Promise<void> removeTreeInSteps(kj::Timer& timer, std::string path, bool keepRoot) {
  auto remover = kj::heap<TreeRemover>(std::move(path), keepRoot);
  auto& ref = *remover;
  return inSteps(timer, [&ref]() { return ref.step(); }).attach(kj::mv(remover));
}

}  // namespace oc::git
