#include "quarantine.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "base/fd.h"
#include "tree_remover.h"

namespace oc::git {

namespace {

// "tmp_objdir-": what receive-pack calls its own, and what `git gc` removes after two weeks.
constexpr std::string_view prefix = "tmp_objdir-open-conduit-";

bool isAlive(const std::string& directory) {
  int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return true;  // gone, or not ours to remove
  kj::AutoCloseFd owned(fd);
  return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

void sync(const std::string& path, int flags) {
  auto fd = openFile(path, flags);
  KJ_SYSCALL(fsync(fd.get()), path);
}

kj::Promise<void> removeAll(kj::Timer& timer, std::vector<std::string> directories) {
  if (directories.empty()) return kj::READY_NOW;
  auto last = std::move(directories.back());
  directories.pop_back();
  return removeTreeInSteps(timer, std::move(last)).then([&timer, directories = std::move(directories)]() mutable {
    return removeAll(timer, std::move(directories));
  });
}

}  // namespace

Quarantine::Quarantine(std::string objectDirectory) : objects(std::move(objectDirectory)) {
  std::string pattern = objects + "/" + std::string(prefix) + "XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) KJ_FAIL_SYSCALL("mkdtemp", errno, pattern);
  directory = pattern;
  lock = openFile(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  // Another one's sweep may hold it for a moment, and then removes it: ours is empty still, so that git will say so.
  KJ_SYSCALL(flock(lock.get(), LOCK_EX), directory);
  KJ_SYSCALL(mkdir((directory + "/pack").c_str(), 0700), directory);
}

uint32_t Quarantine::countObjects(const std::string& packName) const {
  auto fd = openFile(directory + "/pack/" + packName + ".pack", O_RDONLY);
  uint32_t header[3];
  ssize_t n;
  KJ_SYSCALL(n = read(fd.get(), header, sizeof(header)));
  KJ_REQUIRE(n == sizeof(header), "a pack without its header", packName);
  return ntohl(header[2]);
}

void Quarantine::migrate(const std::string& packName) {
  constexpr unsigned noReplace = 1;  // RENAME_NOREPLACE
  auto to = objects + "/pack";
  if (mkdir(to.c_str(), 0755) < 0 && errno != EEXIST) KJ_FAIL_SYSCALL("mkdir", errno, to);
  for (const char* suffix : {".pack", ".rev", ".idx"}) {
    auto name = "/" + packName + suffix;
    auto from = directory + "/pack" + name;
    if (access(from.c_str(), F_OK) < 0) continue;  // .rev comes from newer versions
    sync(from, O_RDONLY);
    if (syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, (to + name).c_str(), noReplace) < 0 &&
        errno != EEXIST) {
      KJ_FAIL_SYSCALL("rename", errno, from);
    }
  }
  sync(to, O_RDONLY | O_DIRECTORY);
}

kj::Promise<void> Quarantine::remove(kj::Timer& timer) { return removeTreeInSteps(timer, directory); }

kj::Promise<void> Quarantine::sweep(kj::Timer& timer, const std::string& objectDirectory) {
  std::vector<std::string> stale;
  DIR* listing = opendir(objectDirectory.c_str());
  if (listing == nullptr) KJ_FAIL_SYSCALL("opendir", errno, objectDirectory);
  KJ_DEFER(closedir(listing));
  while (struct dirent* entry = readdir(listing)) {
    if (!std::string_view(entry->d_name).starts_with(prefix)) continue;
    auto path = objectDirectory + "/" + entry->d_name;
    if (!isAlive(path)) stale.push_back(path);
  }
  return removeAll(timer, std::move(stale));
}

}  // namespace oc::git
