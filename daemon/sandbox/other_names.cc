#include "other_names.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/fd.h"
#include "base/paths.h"
#include "paths_on_disk.h"

namespace oc::sandbox {

namespace {

constexpr size_t mostOfList = 16u << 20;

// Blanks, newlines and backslashes are written as \040 and such.
std::string unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1;
    };
    if (text[i] == '\\' && digit(i + 1) >= 0 && digit(i + 2) >= 0 && digit(i + 3) >= 0) {
      result += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// `path` lies at or under `directory`: the rest, which begins with a slash where there is one.
std::string restOf(const std::string& path, const std::string& directory) {
  return directory == "/" ? (path == "/" ? "" : path) : path.substr(directory.size());
}

std::string joined(const std::string& directory, const std::string& rest) {
  return directory == "/" && !rest.empty() ? rest : directory + rest;
}

struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity&) const = default;
};

std::optional<Identity> identify(const std::string& path) {
  struct stat stats;
  if (stat(path.c_str(), &stats) < 0) return std::nullopt;
  return Identity{stats.st_dev, stats.st_ino};
}

std::string lastOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Whether it is really there under that name. What does not exist is the same where the directory is that it would be
// in.
bool isSame(std::string name, std::string of) {
  for (;;) {
    auto one = identify(name);
    bool absent = errno == ENOENT || errno == ENOTDIR;
    auto other = identify(of);
    if (one && other) return *one == *other;
    // Not ours to look at under its first name, and there under this one.
    if (one && errno == EACCES) return true;
    if (one || other || !absent || lastOf(name) != lastOf(of) || name == "/" || of == "/") return false;
    name = parentOf(name);
    of = parentOf(of);
  }
}

// The kernel's own word. Without it, a mount that lies under another one could be taken for the upper one.
std::optional<uint64_t> mountIdOf(const std::string& path) {
  struct statx stats;
  if (statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, STATX_MNT_ID, &stats) < 0) return std::nullopt;
  if ((stats.stx_mask & STATX_MNT_ID) == 0) return std::nullopt;  // before Linux 5.8
  return stats.stx_mnt_id;
}

const Mount* mountOf(const std::vector<Mount>& mounts, const std::string& path) {
  auto id = mountIdOf(path);
  const Mount* deepest = nullptr;
  for (auto& mount : mounts) {
    if (id && mount.id == *id) return &mount;
    if (!isAtOrUnder(path, mount.point)) continue;
    // Of two at the same point the later one is on top.
    if (deepest == nullptr || mount.point.size() >= deepest->point.size()) deepest = &mount;
  }
  return deepest;
}

}  // namespace

std::vector<Mount> parseMounts(const std::string& list) {
  std::vector<Mount> mounts;
  for (size_t at = 0; at < list.size();) {
    auto end = std::min(list.find('\n', at), list.size());
    std::vector<std::string_view> fields;  // id, parent's id, device, root, point, …
    std::string_view line(list.data() + at, end - at);
    for (size_t from = 0; from < line.size() && fields.size() < 5;) {
      auto to = std::min(line.find(' ', from), line.size());
      fields.push_back(line.substr(from, to - from));
      from = to + 1;
    }
    at = end + 1;
    if (fields.size() < 5 || !fields[3].starts_with('/') || !fields[4].starts_with('/')) continue;
    Mount mount{0, std::string(fields[2]), unescaped(fields[3]), unescaped(fields[4])};
    std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), mount.id);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::vector<OtherName> namesInOtherMounts(const std::vector<Mount>& mounts, const Mount& mount,
                                          const std::string& path) {
  std::vector<OtherName> names;
  if (path == "/" || !isAtOrUnder(path, mount.point)) return names;
  auto inside = joined(mount.root, restOf(path, mount.point));  // within the file system
  for (auto& other : mounts) {
    if (other.device != mount.device) continue;
    OtherName found;
    if (isAtOrUnder(inside, other.root)) {
      found = {joined(other.point, restOf(inside, other.root)), path};
    } else if (isAtOrUnder(other.root, inside)) {
      found = {other.point, joined(path, restOf(other.root, inside))};
    }
    bool known = found.name == found.of || std::find(names.begin(), names.end(), found) != names.end();
    if (!known) names.push_back(std::move(found));
  }
  return names;
}

OtherNames::OtherNames() {
  auto fd = openIfThere("/proc/self/mountinfo", O_RDONLY);
  if (fd) mounts = parseMounts(readAll(fd->get(), mostOfList));
}

std::vector<std::string> OtherNames::of(const std::string& path) const {
  if (path.empty() || path[0] != '/') return {};
  std::string there = path;
  while (there != "/" && !exists(there)) there = parentOf(there);
  auto* mount = mountOf(mounts, there);
  if (mount == nullptr) return {};
  std::vector<std::string> names;
  for (auto& [name, of] : namesInOtherMounts(mounts, *mount, path)) {
    if (isSame(name, of)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> OtherNames::mountsBeneath(const std::string& path) const {
  std::vector<std::string> points;
  for (auto& mount : mounts) {
    if (mount.point != path && isAtOrUnder(mount.point, path)) points.push_back(mount.point);
  }
  return points;
}

std::vector<std::string> OtherNames::with(std::vector<std::string> paths) const {
  for (size_t i = 0, count = paths.size(); i < count; ++i) {
    if (paths[i].empty()) continue;
    for (auto& name : of(resolved(paths[i]))) {
      if (std::find(paths.begin(), paths.end(), name) == paths.end()) paths.push_back(name);
    }
  }
  return paths;
}

}  // namespace oc::sandbox
