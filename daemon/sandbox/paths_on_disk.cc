#include "paths_on_disk.h"

#include <dirent.h>
#include <kj/exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/paths.h"

namespace oc::sandbox {

std::string resolved(const std::string& path) {
  try {
    return resolvePath(path);
  } catch (const kj::Exception&) {
    return path;
  }
}

namespace {

bool hasType(const std::string& path, mode_t type) {
  struct stat stats;
  return stat(path.c_str(), &stats) == 0 && (stats.st_mode & S_IFMT) == type;
}

}  // namespace

bool exists(const std::string& path) {
  struct stat stats;
  return stat(path.c_str(), &stats) == 0;
}

bool isDirectory(const std::string& path) { return hasType(path, S_IFDIR); }
bool isSocket(const std::string& path) { return hasType(path, S_IFSOCK); }
bool isProgram(const std::string& path) { return hasType(path, S_IFREG) && access(path.c_str(), X_OK) == 0; }

std::vector<std::string> childrenOf(const std::string& directory) {
  std::vector<std::string> children;
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return children;
  while (struct dirent* entry = readdir(listing)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") children.push_back(directory == "/" ? "/" + name : directory + "/" + name);
  }
  closedir(listing);
  std::sort(children.begin(), children.end());
  return children;
}

}  // namespace oc::sandbox
