#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace oc::state {

namespace {

std::string directoryOf(const std::string& path) {
  auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Refusal unwritable(const std::string& path, const char* step, int error) {
  std::string fix =
      error == ENOSPC || error == EDQUOT
          ? fmt::format("make room on the disk of {}", directoryOf(path))
          : fmt::format("make {} a directory that you own and can write to, on a disk that is not read-only",
                        directoryOf(path));
  return {"state_unwritable", fmt::format("{}: {}: {}", path, step, strerror(error)), fix};
}

Refusal notAFile(const std::string& path, const char* found) {
  return {"state_damaged", fmt::format("{} in the place of the state database: {}", found, path),
          fmt::format("move {} away, or restore the database there. To keep the state elsewhere, link the directory "
                      "that it is in, or set XDG_STATE_HOME",
                      path)};
}

// Nothing when it opened; otherwise why not.
std::optional<Refusal> openOurs(const std::string& path, int flags, kj::AutoCloseFd& result) {
  // O_NONBLOCK: a FIFO in the file's place must not hold us.
  int fd = open(path.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) {
    if (errno == ELOOP) return notAFile(path, "a symbolic link is");
    if (errno == EISDIR) return notAFile(path, "a directory is");
    if (errno == ENXIO) return notAFile(path, "a socket is");
    return unwritable(path, "opening it", errno);
  }
  result = kj::AutoCloseFd(fd);
  struct stat stats;
  KJ_SYSCALL(fstat(fd, &stats), path);
  if (!S_ISREG(stats.st_mode)) return notAFile(path, "something that is no regular file is");
  // Whatever the umask was, or whatever somebody made of it since. SQLite gives its other files the same
  // mode.
  if ((stats.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0) return unwritable(path, "making it private", errno);
  return std::nullopt;
}

// What the other daemon wrote there; it may be in the middle of it, so whatever is no number counts as
// nothing.
std::string pidIn(int fd) {
  char text[16];
  ssize_t n = pread(fd, text, sizeof(text), 0);
  std::string pid;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) pid += text[i];
  return pid;
}

std::optional<Refusal> writePid(int fd, const std::string& path) {
  std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) < 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return unwritable(path, "writing to it", errno);
  }
  return std::nullopt;
}

}  // namespace

OrRefusal<StateLock> lockState(const std::string& database) {
  std::string path = database + ".lock";
  kj::AutoCloseFd fd;
  if (auto refusal = openOurs(path, O_CREAT, fd)) return *refusal;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK) return unwritable(path, "locking it", errno);
    auto pid = pidIn(fd.get());
    return Refusal{"state_locked",
                   fmt::format("another daemon{} has the state database open: {}",
                               pid.empty() ? "" : fmt::format(" (process {})", pid), database),
                   "stop the other daemon first; a state directory has one daemon at a time"};
  }
  if (auto refusal = writePid(fd.get(), path)) return *refusal;
  return StateLock{kj::mv(fd)};
}

std::optional<Refusal> prepareStateFile(const std::string& database) {
  kj::AutoCloseFd fd;
  if (auto refusal = openOurs(database, O_CREAT, fd)) return refusal;
  struct stat stats;
  KJ_SYSCALL(fstat(fd.get(), &stats), database);
  if (stats.st_size > 0) return std::nullopt;
  // SQLite syncs the directory for the files that it makes; this one it finds.
  int directory = open(directoryOf(database).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return unwritable(database, "opening its directory", errno);
  kj::AutoCloseFd directoryFd(directory);
  if (fsync(directory) < 0) return unwritable(database, "syncing its directory", errno);
  return std::nullopt;
}

}  // namespace oc::state
