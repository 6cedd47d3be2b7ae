#include "processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/exception.h>

#include <algorithm>

#include "base/fd.h"
#include "base/procfs.h"

namespace oc::srt {

namespace {

// srt's socat inside the sandbox; the ports are srt's.
bool isRelay(pid_t pid) {
  try {
    auto fd = openIfThere(fmt::format("/proc/{}/cmdline", pid), O_RDONLY);
    if (!fd) return false;
    auto words = readAll(fd->get(), 1 << 20);
    for (auto port : {"-LISTEN:3128,", "-LISTEN:1080,"}) {
      if (words.find(port) != std::string::npos && words.find("UNIX-CONNECT:") != std::string::npos) return true;
    }
  } catch (const kj::Exception&) {
    // It has ended meanwhile.
  }
  return false;
}

}  // namespace

std::vector<pid_t> agentProcesses() {
  struct Seen {
    pid_t pid;
    size_t depth;
    bool isFirst;
  };
  std::vector<Seen> seen;
  size_t deepest = 0;
  DIR* proc = opendir("/proc");
  KJ_REQUIRE(proc != nullptr, "/proc cannot be read");
  KJ_DEFER(closedir(proc));
  while (struct dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    pid_t pid = atoi(entry->d_name);
    auto status = readProcessStatus(pid);
    if (!status || status->state == 'Z' || status->nsPids.empty()) continue;
    seen.push_back({pid, status->nsPids.size(), status->nsPids.back() == 1});
    deepest = std::max(deepest, status->nsPids.size());
  }
  std::vector<pid_t> agents;
  if (deepest < 2) return agents;
  for (auto& one : seen) {
    if (one.depth == deepest && !one.isFirst && !isRelay(one.pid)) agents.push_back(one.pid);
  }
  return agents;
}

}  // namespace oc::srt
