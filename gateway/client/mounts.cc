#include "mounts.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <cstring>

#include "base/error.h"

namespace oc::gateway {

namespace {

// Takes "NUMBER:" off the text.
template <typename Number>
bool takeNumber(std::string_view& text, Number& number) {
  auto end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop == end || *stop != ':') return false;
  text.remove_prefix(static_cast<size_t>(stop + 1 - text.data()));
  return true;
}

}  // namespace

PlannedMount readPlannedMount(std::string_view text) {
  PlannedMount mount;
  auto rest = text;
  if (!takeNumber(rest, mount.device) || !takeNumber(rest, mount.inode) || !rest.starts_with('/')) {
    fail(fmt::format("--mount {} is not DEVICE:INODE:PATH", text));
  }
  mount.path = rest;
  return mount;
}

void checkMount(const PlannedMount& mount) {
  struct stat found;
  if (lstat(mount.path.c_str(), &found) < 0) {
    fail(fmt::format("the mount {} is not there: {}", mount.path, strerror(errno)));
  }
  if (found.st_dev == mount.device && found.st_ino == mount.inode) return;
  fail(
      fmt::format("the mount {} is not what was planned: it is device {} inode {}, and was to be {} and {}. "
                  "Its source was replaced while the container was made.",
                  mount.path, found.st_dev, found.st_ino, mount.device, mount.inode));
}

}  // namespace oc::gateway
