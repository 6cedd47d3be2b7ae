#include "object_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace oc::git {

namespace {

// objects/pack/pack-….idx and objects/info/commit-graphs/graph-….graph
constexpr int deepest = 3;

mode_t typeOf(DIR* directory, const struct dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return DTTOIF(entry.d_type);
  struct stat stats;
  KJ_SYSCALL(fstatat(dirfd(directory), entry.d_name, &stats, AT_SYMLINK_NOFOLLOW), entry.d_name);
  return stats.st_mode & S_IFMT;
}

OddObject oddIn(int parent, const std::string& name, int depth) {
  int fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return {true, "", errno};
  DIR* directory = fdopendir(fd);
  if (directory == nullptr) {
    close(fd);
    KJ_FAIL_SYSCALL("fdopendir", errno, name);
  }
  KJ_DEFER(closedir(directory));
  while (auto* entry = readdir(directory)) {
    std::string own = entry->d_name;
    if (own == "." || own == "..") continue;
    auto type = typeOf(directory, *entry);
    if (type == S_IFREG) continue;
    if (type != S_IFDIR || depth == deepest) return {true, own, 0};
    auto odd = oddIn(dirfd(directory), own, depth + 1);
    if (!odd.found) continue;
    odd.name = odd.name.empty() ? own : own + "/" + odd.name;
    return odd;
  }
  return {};
}

}  // namespace

OddObject oddObject(const std::string& objects) { return oddIn(AT_FDCWD, objects, 1); }

}  // namespace oc::git
