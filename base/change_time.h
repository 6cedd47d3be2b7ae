// When a file's content, mode, owner or name was changed last, as the kernel keeps it: an agent sets a file's other
// times as it likes. Who compares two of these has both from the same file system, whose clock goes by steps of some
// milliseconds.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace oc {

// In nanoseconds since 1970.
inline int64_t changeTime(const struct stat& stats) {
  return static_cast<int64_t>(stats.st_ctim.tv_sec) * 1'000'000'000 + stats.st_ctim.tv_nsec;
}

}  // namespace oc
