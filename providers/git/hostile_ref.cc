#include "hostile_ref.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "task.h"

namespace oc::git {

namespace {

constexpr size_t longestRef = 4096;
constexpr size_t longestPackedRefs = 64 << 20;

std::optional<std::string> readRegular(const std::string& root, const std::string& relative, size_t limit) {
  int fd = openBeneath(root, relative, O_RDONLY | O_NONBLOCK);
  if (fd < 0) {
    // A directory on the way that is a file, or not there: no such ref.
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    KJ_FAIL_SYSCALL("open (links are not followed)", errno, relative);
  }
  kj::AutoCloseFd owned(fd);
  struct stat stats;
  KJ_SYSCALL(fstat(fd, &stats), relative);
  if (S_ISDIR(stats.st_mode)) return std::nullopt;
  KJ_REQUIRE(S_ISREG(stats.st_mode), "not a regular file", relative);
  return readAll(fd, limit);
}

std::string requireId(const std::string& text, const std::string& name) {
  if (text.starts_with("ref: "))
    KJ_FAIL_REQUIRE("the run made its branch a name for another ref, not a commit's id, and that is not followed");
  KJ_REQUIRE(isObjectId(text), "the run's branch does not hold a commit's id", shown(name));
  return text;
}

std::optional<std::string> findPacked(const std::string& gitDir, const std::string& ref) {
  auto packed = readRegular(gitDir, "packed-refs", longestPackedRefs);
  if (!packed) return std::nullopt;
  auto& text = *packed;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    auto space = line.find(' ');
    if (space == std::string_view::npos || line.substr(space + 1) != ref) continue;
    return requireId(std::string(line.substr(0, space)), ref);
  }
  return std::nullopt;
}

}  // namespace

int openBeneath(const std::string& root, const std::string& relative, int flags) {
  int fd = open(root.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  for (size_t at = 0; fd >= 0 && at <= relative.size();) {
    size_t end = std::min(relative.find('/', at), relative.size());
    auto name = relative.substr(at, end - at);
    bool last = end == relative.size();
    int inner = openat(fd, name.c_str(), (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(fd);
    errno = error;
    fd = inner;
    at = end + 1;
  }
  return fd;
}

std::optional<std::string> readBranch(const std::string& gitDir, const std::string& branch) {
  auto ref = "refs/heads/" + branch;
  auto loose = readRegular(gitDir, ref, longestRef);
  if (!loose) return findPacked(gitDir, ref);
  auto& text = *loose;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return requireId(text, ref);
}

}  // namespace oc::git
