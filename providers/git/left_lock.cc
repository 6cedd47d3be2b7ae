#include "left_lock.h"

#include <sys/stat.h>
#include <unistd.h>

namespace oc::git {

LeftLock::LeftLock(const std::string& gitDir, const std::string& branch)
    : file(gitDir + "/refs/heads/" + branch + ".lock"), before(look()) {}

bool LeftLock::Identity::operator==(const Identity& other) const {
  return device == other.device && inode == other.inode && size == other.size &&
         changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
}

std::optional<LeftLock::Identity> LeftLock::look() const {
  struct stat stats;
  if (lstat(file.c_str(), &stats) < 0 || !S_ISREG(stats.st_mode)) return std::nullopt;
  return Identity{stats.st_dev, stats.st_ino, stats.st_size, stats.st_ctim};
}

bool LeftLock::removeIfUntouched() const { return before && look() == before && unlink(file.c_str()) == 0; }

}  // namespace oc::git
