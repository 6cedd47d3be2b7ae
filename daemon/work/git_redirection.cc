#include "git_redirection.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/io.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

namespace oc::work {

namespace {

// The agent may have shut us out of its own directories.
kj::AutoCloseFd enter(int above, const char* name) {
  auto open = [&]() { return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); };
  int fd = open();
  struct stat stats;
  if (fd < 0 && errno == EACCES && fstatat(above, name, &stats, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(stats.st_mode)) {
    (void)!fchmodat(above, name, (stats.st_mode & 07777) | S_IRWXU, 0);
    fd = open();
  }
  return kj::AutoCloseFd(fd);
}

}  // namespace

bool removeGitRedirection(const std::string& workspace) {
  auto top = enter(AT_FDCWD, workspace.c_str());
  if (top.get() < 0) return false;
  auto git = enter(top.get(), ".git");
  if (git.get() < 0) return false;
  struct stat stats;
  if (fstatat(git.get(), "commondir", &stats, AT_SYMLINK_NOFOLLOW) < 0) return false;
  if ((stats.st_mode & S_IWUSR) == 0 || S_ISDIR(stats.st_mode)) {
    if (fstat(git.get(), &stats) == 0) (void)!fchmod(git.get(), (stats.st_mode & 07777) | S_IRWXU);
  }
  if (unlinkat(git.get(), "commondir", 0) < 0) removeTree(workspace + "/.git/commondir");
  return true;
}

}  // namespace oc::work
