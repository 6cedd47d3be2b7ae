// The same file under another name: what is mounted twice, as bind mounts are, and a file system whose top lies beside
// the part of it that is a home. A sandbox denies names, so it has to know them all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oc::sandbox {

struct Mount {
  uint64_t id = 0;
  std::string device;  // "8:1"
  std::string root;    // what of the file system is mounted
  std::string point;   // where
};

// The kernel's list (/proc/PID/mountinfo). Lines that are none are left out.
std::vector<Mount> parseMounts(const std::string& list);

struct OtherName {
  std::string name, of;
  bool operator==(const OtherName&) const = default;
};

// Names in other mounts of `path`, which lies in `mount`; and the places where something beneath it is mounted. Text
// alone: whether the name leads there, or something else is mounted over it, is another question.
std::vector<OtherName> namesInOtherMounts(const std::vector<Mount>& mounts, const Mount& mount,
                                          const std::string& path);

// The mounts of this process, as they are now.
class OtherNames {
 public:
  OtherNames();

  // Under which a file or directory can be reached besides `path`, which is a real path; and where parts of it can be.
  // What does not exist yet has the names that it would have. None for the root.
  std::vector<std::string> of(const std::string& path) const;

  // Each mount somewhere beneath the path: it is part of what a sandbox is given with that.
  std::vector<std::string> mountsBeneath(const std::string& path) const;

  // The paths, and behind them their other names. An empty one stays.
  std::vector<std::string> with(std::vector<std::string> paths) const;

 private:
  std::vector<Mount> mounts;
};

}  // namespace oc::sandbox
