#include "placeholders.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/log.h"
#include "base/paths.h"

namespace oc::srt {

namespace {

bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0 || errno != ENOENT;
}

// The part of the path that srt would make: its first name that is missing.
std::string firstMissing(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    auto above = path.substr(0, slash);
    if (!isThere(above)) return above;
  }
  return path;
}

void removeIfEmpty(const std::string& path) {
  struct stat stats;
  if (lstat(path.c_str(), &stats) < 0) return;
  int result = 0;
  if (S_ISDIR(stats.st_mode)) {
    result = rmdir(path.c_str());
  } else if (S_ISREG(stats.st_mode) && stats.st_size == 0) {
    result = unlink(path.c_str());
  }
  if (result < 0) logWarning("{}, which srt left behind, cannot be removed: {}", path, strerror(errno));
}

// The agent may have shut us out of its own directories.
void openUp(const std::string& directory) {
  struct stat stats;
  if (lstat(directory.c_str(), &stats) < 0 || !S_ISDIR(stats.st_mode)) return;
  if ((stats.st_mode & S_IRWXU) != S_IRWXU) chmod(directory.c_str(), (stats.st_mode & 07777) | S_IRWXU);
}

void removeCommonDir(const std::string& path) {
  auto git = path.substr(0, path.rfind('/'));
  openUp(git.substr(0, git.rfind('/')));
  openUp(git);
  if (!isThere(path)) return;
  removeTree(path);
  logWarning("{}, which the agent made, was removed: it would move git's config elsewhere", path);
}

}  // namespace

Placeholders::Placeholders(const Settings& settings) {
  auto isWritable = [&settings](const std::string& path) {
    return std::any_of(settings.allowWrite.begin(), settings.allowWrite.end(),
                       [&path](auto& directory) { return isAtOrUnder(path, directory); });
  };
  for (auto& path : settings.denyWrite) {
    // Elsewhere srt makes none, and what comes to be there is somebody else's.
    if (!isThere(path) && isWritable(path)) absent.push_back(firstMissing(path));
  }
  for (auto& path : settings.allowWrite) {
    if (!path.ends_with("/.git")) continue;
    auto commonDir = path + "/commondir";
    if (!isThere(commonDir)) absentCommonDirs.push_back(commonDir);
  }
}

void Placeholders::remove() const {
  for (auto& path : absent) removeIfEmpty(path);
  for (auto& path : absentCommonDirs) removeCommonDir(path);
}

}  // namespace oc::srt
