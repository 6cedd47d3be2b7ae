#include "paths_on_disk.h"

#include <dirent.h>
#include <kj/exception.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <iterator>

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

namespace {

// The kernel's own bound.
constexpr size_t mostLinks = 40;

std::string targetOf(const std::string& link) {
  char target[PATH_MAX];
  auto size = readlink(link.c_str(), target, sizeof(target));
  if (size <= 0) return "";
  std::string text(target, static_cast<size_t>(size));
  return normalizePath(text[0] == '/' ? text : link.substr(0, link.rfind('/')) + "/" + text);
}

void addLinks(const std::string& path, std::vector<std::string>& links) {
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    auto beginning = path.substr(0, end);
    struct stat stats;
    if (lstat(beginning.c_str(), &stats) < 0 || !S_ISLNK(stats.st_mode)) continue;
    bool known = std::find(links.begin(), links.end(), beginning) != links.end();
    if (known || links.size() >= mostLinks) return;
    links.push_back(beginning);
    // What is behind it is found under the target's name.
    auto target = targetOf(beginning);
    if (!target.empty()) addLinks(target + (end == std::string::npos ? "" : path.substr(end)), links);
    return;
  }
}

}  // namespace

std::vector<std::string> linksOnTheWayTo(const std::string& path) {
  std::vector<std::string> links;
  if (path.size() > 1 && path[0] == '/') addLinks(path, links);
  return links;
}

bool exists(const std::string& path) {
  struct stat stats;
  return stat(path.c_str(), &stats) == 0;
}

bool isDirectory(const std::string& path) { return hasType(path, S_IFDIR); }
bool isSocket(const std::string& path) { return hasType(path, S_IFSOCK); }
bool isProgram(const std::string& path) { return hasType(path, S_IFREG) && access(path.c_str(), X_OK) == 0; }

bool isKernelsOwn(const std::string& path) {
  constexpr decltype(statfs::f_type) kinds[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,       CGROUP_SUPER_MAGIC,
                                                CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,     TRACEFS_MAGIC,
                                                SECURITYFS_MAGIC,    DEVPTS_SUPER_MAGIC};
  struct statfs stats;
  if (statfs(path.c_str(), &stats) < 0) return false;
  return std::find(std::begin(kinds), std::end(kinds), stats.f_type) != std::end(kinds);
}

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
