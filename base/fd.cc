#include "fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "error.h"

namespace oc {

FdPair makeSocketPair() {
  int fds[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
  return {kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])};
}

FdPair makePipe() {
  int fds[2];
  KJ_SYSCALL(pipe2(fds, O_CLOEXEC));
  return {kj::AutoCloseFd(fds[0]), kj::AutoCloseFd(fds[1])};
}

kj::AutoCloseFd openFile(const std::string& path, int flags, unsigned mode) {
  int fd;
  KJ_SYSCALL(fd = open(path.c_str(), flags | O_CLOEXEC, mode), path);
  return kj::AutoCloseFd(fd);
}

std::optional<kj::AutoCloseFd> openIfThere(const std::string& path, int flags) {
  int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) {
    int error = errno;
    if (error == ENOENT || error == ENOTDIR) return std::nullopt;
    KJ_FAIL_SYSCALL("open", error, path);
  }
  return kj::AutoCloseFd(fd);
}

std::string readAll(int fd, size_t limit) {
  std::string result;
  char buffer[16384];
  for (;;) {
    ssize_t n;
    KJ_SYSCALL_HANDLE_ERRORS(n = read(fd, buffer, sizeof(buffer))) {
      default: KJ_FAIL_SYSCALL("read", error);
    }
    if (n == 0) return result;
    KJ_REQUIRE(result.size() + n <= limit, "there is more to read than allowed", limit);
    result.append(buffer, n);
  }
}

std::string readFile(const std::string& path, size_t limit) {
  // O_NONBLOCK: a FIFO in the file's place must not hold us before fstat says what it is.
  auto fd = openFile(path, O_RDONLY | O_NONBLOCK);
  struct stat stats;
  KJ_SYSCALL(fstat(fd.get(), &stats), path);
  if (!S_ISREG(stats.st_mode)) fail("not a regular file: " + path);
  if (static_cast<uint64_t>(stats.st_size) > limit) fail(fmt::format("larger than {} bytes: {}", limit, path));
  return readAll(fd.get(), limit);
}

void writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n;
    KJ_SYSCALL_HANDLE_ERRORS(n = write(fd, bytes.data(), bytes.size())) {
      default: KJ_FAIL_SYSCALL("write", error);
    }
    bytes.remove_prefix(n);
  }
}

namespace {

void syncDirectoryOf(const std::string& path) {
  auto slash = path.rfind('/');
  auto fd = openFile(slash == 0 ? "/" : path.substr(0, slash), O_RDONLY | O_DIRECTORY);
  KJ_SYSCALL(fsync(fd.get()), path);
}

}  // namespace

void writeFileAtomically(const std::string& path, std::string_view bytes, unsigned mode) {
  std::string beside = path + ".new";
  if (unlink(beside.c_str()) < 0 && errno != ENOENT) KJ_FAIL_SYSCALL("unlink", errno, beside);
  KJ_ON_SCOPE_FAILURE(unlink(beside.c_str()));
  {
    auto fd = openFile(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    KJ_SYSCALL(fchmod(fd.get(), mode), beside);  // whatever the umask is
    writeAll(fd.get(), bytes);
    KJ_SYSCALL(fsync(fd.get()), beside);
  }
  KJ_SYSCALL(rename(beside.c_str(), path.c_str()), path);
  syncDirectoryOf(path);
}

void makeDirectories(const std::string& path, unsigned mode) {
  KJ_REQUIRE(!path.empty() && path[0] == '/', "not an absolute path", path);
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at);
    std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), mode) < 0) {
      int error = errno;
      struct stat stats;
      bool isDirectory = stat(part.c_str(), &stats) == 0 && S_ISDIR(stats.st_mode);
      if (!isDirectory) KJ_FAIL_SYSCALL("mkdir", error, part);
    }
    if (at != std::string::npos) ++at;
  }
}

namespace {

// Not all kernels say by the error that it was a link.
std::string whyNoFolder(const std::string& path, int error) {
  struct stat stats;
  if (lstat(path.c_str(), &stats) == 0) {
    if (S_ISLNK(stats.st_mode)) return "is a symbolic link, and has to be a folder itself";
    if (!S_ISDIR(stats.st_mode)) return "is in the place of a folder; move it away";
    if (stats.st_uid != geteuid()) return fmt::format("belongs to another user (uid {})", stats.st_uid);
  }
  return fmt::format("can't be opened: {}", strerror(error));
}

}  // namespace

void makePrivateDirectory(const std::string& path) {
  auto slash = path.rfind('/');
  if (slash != 0) makeDirectories(path.substr(0, slash), 0755);
  if (mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
    fail(fmt::format("the folder {} can't be made: {}", path, strerror(errno)));
  }
  int opened = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) fail(fmt::format("{} {}", path, whyNoFolder(path, errno)));
  kj::AutoCloseFd fd(opened);
  struct stat stats;
  KJ_SYSCALL(fstat(fd.get(), &stats), path);
  if (stats.st_uid != geteuid())
    fail(fmt::format("the folder {} belongs to another user (uid {})", path, stats.st_uid));
  KJ_SYSCALL(fchmod(fd.get(), 0700), path);
}

namespace {

// For a directory that its maker closed to itself. By way of /proc, since fchmodat would follow a link.
void openDirectoryToOwner(int parent, const char* name) {
  int fd;
  KJ_SYSCALL(fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), name);
  kj::AutoCloseFd owned(fd);
  KJ_SYSCALL(chmod(kj::str("/proc/self/fd/", fd).cStr(), 0700), name);
}

// Deletes a tree by descriptors, so that a name that is swapped for a link meanwhile leads nowhere else. What lies
// deeper than `deepest` is moved up to the root and deleted in another pass: the number of open files stays bounded,
// however deep somebody has nested directories.
class TreeRemover {
 public:
  explicit TreeRemover(int root) : root(root) {}

  void run() {
    do {
      moved = false;
      empty(root, 0);
    } while (moved);
  }

 private:
  static constexpr int deepest = 100;

  void empty(int directory, int depth) {
    int copy;
    KJ_SYSCALL(copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR* listing = fdopendir(copy);
    if (listing == nullptr) {
      close(copy);
      KJ_FAIL_SYSCALL("fdopendir", errno);
    }
    KJ_DEFER(closedir(listing));
    while (struct dirent* entry = readdir(listing)) {
      const char* name = entry->d_name;
      if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) remove(directory, name, depth);
    }
  }

  void remove(int directory, const char* name, int depth) {
    if (unlinkat(directory, name, 0) == 0 || errno == ENOENT) return;
    if (errno != EISDIR && errno != EPERM && errno != EACCES) KJ_FAIL_SYSCALL("unlinkat", errno, name);
    if (depth == deepest) return moveUp(directory, name);
    int inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0 && errno == EACCES) {
      openDirectoryToOwner(directory, name);
      inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (inner < 0) KJ_FAIL_SYSCALL("openat", errno, name);
    kj::AutoCloseFd innerFd(inner);
    KJ_SYSCALL(fchmod(inner, 0700), name);
    empty(inner, depth + 1);
    innerFd = nullptr;
    KJ_SYSCALL(unlinkat(directory, name, AT_REMOVEDIR), name);
  }

  void moveUp(int directory, const char* name) {
    openDirectoryToOwner(directory, name);  // its ".." is written to
    for (;;) {
      auto target = kj::str(".removing-", count++);
      if (renameat(directory, name, root, target.cStr()) == 0) break;
      if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) KJ_FAIL_SYSCALL("renameat", errno, name);
    }
    moved = true;
  }

  int root;
  bool moved = false;
  uint64_t count = 0;
};

}  // namespace

void removeTree(const std::string& path) {
  struct stat stats;
  if (lstat(path.c_str(), &stats) < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    KJ_FAIL_SYSCALL("lstat", errno, path);
  }
  if (!S_ISDIR(stats.st_mode)) {
    KJ_SYSCALL(unlink(path.c_str()), path);
    return;
  }
  KJ_SYSCALL(chmod(path.c_str(), 0700), path);
  {
    auto fd = openFile(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    TreeRemover(fd.get()).run();
  }
  KJ_SYSCALL(rmdir(path.c_str()), path);
}

}  // namespace oc
