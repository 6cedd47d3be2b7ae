#include "procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "fd.h"

namespace oc {

namespace {

// Reads what is there; empty when the process has gone meanwhile (ENOENT, or ESRCH on the read).
std::string readProc(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  kj::AutoCloseFd owned(fd);
  std::string result;
  char buffer[4096];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof(buffer))) > 0 && result.size() < 65536) result.append(buffer, n);
  return n < 0 ? "" : result;
}

std::string_view field(std::string_view status, std::string_view name) {
  auto key = fmt::format("\n{}:", name);
  auto at = status.find(key);
  if (at == std::string_view::npos) return "";
  auto begin = status.find_first_not_of(" \t", at + key.size());
  auto end = status.find('\n', begin);
  return status.substr(begin, end - begin);
}

int number(std::string_view text) { return atoi(std::string(text).c_str()); }

}  // namespace

bool ProcessStatus::hasNoCapabilities() const {
  auto zero = [](const std::string& hex) { return hex.find_first_not_of('0') == std::string::npos; };
  return zero(capEff) && zero(capPrm) && zero(capAmb);
}

std::optional<ProcessStatus> readProcessStatus(pid_t pid) {
  auto text = readProc(fmt::format("/proc/{}/status", pid));
  if (text.empty()) return std::nullopt;
  ProcessStatus status;
  constexpr std::string_view first = "Name:\t";
  if (text.starts_with(first)) status.name = text.substr(first.size(), text.find('\n') - first.size());
  status.parent = number(field(text, "PPid"));
  auto state = field(text, "State");
  status.state = state.empty() ? '?' : state[0];
  status.noNewPrivs = number(field(text, "NoNewPrivs")) == 1;
  status.seccomp = number(field(text, "Seccomp"));
  status.capEff = field(text, "CapEff");
  status.capPrm = field(text, "CapPrm");
  status.capAmb = field(text, "CapAmb");
  auto pids = std::string(field(text, "NSpid"));
  for (char* at = pids.data(); *at != '\0';) {
    char* end;
    long value = strtol(at, &end, 10);
    if (end == at) break;
    status.nsPids.push_back(static_cast<pid_t>(value));
    at = end;
  }
  return status;
}

std::vector<pid_t> descendants(pid_t root) {
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  DIR* proc = opendir("/proc");
  KJ_REQUIRE(proc != nullptr, "/proc cannot be read");
  KJ_DEFER(closedir(proc));
  while (struct dirent* entry = readdir(proc)) {
    if (!isdigit(static_cast<unsigned char>(entry->d_name[0]))) continue;
    pid_t pid = atoi(entry->d_name);
    auto stat = readProc(fmt::format("/proc/{}/stat", pid));
    // The name is in parentheses and may hold anything: the last ')' ends it. Then: state, parent.
    auto close = stat.rfind(')');
    if (close == std::string::npos || close + 4 > stat.size()) continue;
    children[number(stat.substr(close + 4))].push_back(pid);
  }
  std::vector<pid_t> result;
  std::vector<pid_t> unvisited = {root};
  while (!unvisited.empty()) {
    pid_t pid = unvisited.back();
    unvisited.pop_back();
    for (pid_t child : children[pid]) {
      result.push_back(child);
      unvisited.push_back(child);
    }
  }
  return result;
}

std::string ownDirectory() {
  char path[4096];
  ssize_t n;
  KJ_SYSCALL(n = readlink("/proc/self/exe", path, sizeof(path)));
  std::string program(path, n);
  return program.substr(0, program.rfind('/'));
}

}  // namespace oc
