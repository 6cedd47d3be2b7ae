#include "log.h"

#include <errno.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace oc::run {

RunLog::RunLog(kj::AutoCloseFd fdParam, uint64_t limit) : fd(kj::mv(fdParam)), limit(limit) {
  struct stat stats;
  KJ_SYSCALL(fstat(fd.get(), &stats));
  size = stats.st_size;
}

void RunLog::append(kj::ArrayPtr<const kj::byte> bytes) {
  size_t room = size >= limit ? 0 : std::min<uint64_t>(limit - size, bytes.size());
  if (!troubleText.empty()) room = 0;
  put(reinterpret_cast<const char*>(bytes.begin()), room);
  droppedBytes += bytes.size() - room;
  if (room < bytes.size() && troubleText.empty()) {
    troubleText = fmt::format("the log's limit of {} bytes was reached; what follows is dropped", limit);
    auto line = fmt::format("\n[open-conduit: {}]\n", troubleText);
    put(line.data(), line.size());
  }
}

void RunLog::put(const char* bytes, size_t length) {
  while (length > 0) {
    ssize_t n = ::write(fd.get(), bytes, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      troubleText = fmt::format("the log cannot be written: {}; what follows is dropped", strerror(errno));
      droppedBytes += length;
      return;
    }
    size += n;
    bytes += n;
    length -= n;
  }
}

}  // namespace oc::run
