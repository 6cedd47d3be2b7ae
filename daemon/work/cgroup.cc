#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/exception.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/fd.h"
#include "base/log.h"
#include "daemon/config/formats.h"

namespace oc::work {

namespace {

// The second version has processes in leaves alone: the daemon, and what it starts, go into one of this name.
constexpr std::string_view leaf = "/open-conduit-daemon";
constexpr const char* inner = "/agent";
constexpr uint64_t cpuPeriod = 100'000;  // microseconds, the kernel's default

bool put(const std::string& path, const std::string& text) {
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = write(fd, text.data(), text.size());
  int error = errno;
  close(fd);
  errno = error;
  return n == static_cast<ssize_t>(text.size());
}

// Empty where it cannot be read.
std::string textOf(const std::string& path) {
  try {
    auto fd = openIfThere(path, O_RDONLY);
    return fd ? readAll(fd->get(), 1 << 20) : "";
  } catch (const kj::Exception&) {
    return "";
  }
}

std::vector<std::string> wordsOf(const std::string& text, char separator = ' ') {
  std::vector<std::string> words;
  std::string word;
  for (std::istringstream in(text); std::getline(in, word, separator);) {
    if (!word.empty() && word.back() == '\n') word.pop_back();
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct Mount {
  std::string root, point, type;
  std::vector<std::string> options;  // the super block's, which name a hierarchy's controllers
};

std::vector<Mount> readMounts(const std::string& text) {
  std::vector<Mount> mounts;
  for (auto& line : wordsOf(text, '\n')) {
    auto words = wordsOf(line);
    auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    mounts.push_back({words[3], words[4], dash[1], wordsOf(dash[3], ',')});
  }
  return mounts;
}

// "4:memory:/a/b": of the hierarchy with that controller; of the second version with an empty one.
std::optional<std::string> ownGroup(const std::string& text, const std::string& controller) {
  for (auto& line : wordsOf(text, '\n')) {
    auto one = line.find(':'), two = line.find(':', one + 1);
    if (one == std::string::npos || two == std::string::npos) continue;
    auto controllers = line.substr(one + 1, two - one - 1);
    bool found = controller.empty() ? controllers.empty() : has(wordsOf(controllers, ','), controller);
    if (found) return line.substr(two + 1);
  }
  return std::nullopt;
}

std::optional<std::string> folderOf(const std::vector<Mount>& mounts, const std::string& type,
                                    const std::string& controller, const std::string& group) {
  for (auto& mount : mounts) {
    if (mount.type != type || (!controller.empty() && !has(mount.options, controller))) continue;
    auto rest = mount.root == "/" ? group : group.starts_with(mount.root) ? group.substr(mount.root.size()) : "";
    if (mount.root != "/" && !group.starts_with(mount.root)) continue;
    return rest == "/" || rest.empty() ? mount.point : mount.point + rest;
  }
  return std::nullopt;
}

// All processes of a group of the second version go into its leaf, so that it can have groups with controllers.
bool makeRoom(const std::string& folder, const std::string& controller) {
  if (has(wordsOf(textOf(folder + "/cgroup.subtree_control")), controller)) return true;
  auto inside = folder + std::string(leaf);
  if (mkdir(inside.c_str(), 0755) < 0 && errno != EEXIST) return false;
  for (auto& pid : wordsOf(textOf(folder + "/cgroup.procs"), '\n')) put(inside + "/cgroup.procs", pid);
  return put(folder + "/cgroup.subtree_control", "+" + controller);
}

// Numbers of processes that our namespace does not have are 0.
void killAll(const std::string& folder) {
  if (put(folder + "/cgroup.kill", "1")) return;
  for (auto& word : wordsOf(textOf(folder + "/cgroup.procs"), '\n')) {
    auto pid = strtol(word.c_str(), nullptr, 10);
    if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
  }
}

uint64_t numberIn(const std::string& text, const std::string& name) {
  auto at = text.find(name + " ");
  return at == std::string::npos ? 0 : strtoull(text.c_str() + at + name.size() + 1, nullptr, 10);
}

uint64_t killedIn(const std::string& folder) {
  return numberIn(textOf(folder + "/memory.events"), "oom_kill") +
         numberIn(textOf(folder + "/memory.oom_control"), "oom_kill");
}

Refusal refusal(const std::string& limit, const std::string& why) {
  return {"sandbox_unavailable", fmt::format("limits.{} cannot be kept: {}", limit, why),
          "run the daemon as its systemd user unit, which is given control groups (Delegate=yes), or remove the limit"};
}

using FilesToFill = std::vector<std::pair<std::string, std::string>>;  // names and what goes in

// With the one below it that the run goes into: a namespace of the agent's own has its root beneath the limits then,
// out of whose reach they are. What an earlier attempt left may have had other limits.
Refusal makeAnew(const std::string& folder, const char* limit) {
  auto agents = folder + inner;
  rmdir(agents.c_str());
  rmdir(folder.c_str());
  if (mkdir(folder.c_str(), 0755) < 0 && errno != EEXIST) {
    return refusal(limit, fmt::format("{} cannot be made: {}", folder, strerror(errno)));
  }
  if (mkdir(agents.c_str(), 0755) == 0 || errno == EEXIST) return {};
  int error = errno;
  rmdir(folder.c_str());
  return refusal(limit, fmt::format("{} cannot be made: {}", agents, strerror(error)));
}

Refusal setLimit(const std::string& folder, const FilesToFill& files, const char* limit) {
  for (auto& [file, text] : files) {
    auto path = folder + "/" + file;
    bool wanted = file.find("memsw") == std::string::npos && file.find("swap") == std::string::npos;
    if (put(path, text) || (!wanted && errno == ENOENT)) continue;
    return refusal(limit, fmt::format("{}: {}", path, strerror(errno)));
  }
  return {};
}

void removeFolder(const std::string& folder) {
  if (rmdir(folder.c_str()) < 0 && errno != ENOENT) {
    logWarning("the control group {} cannot be removed: {}", folder, strerror(errno));
  }
}

}  // namespace

bool CgroupFiles::isService() {
  auto pid = getenv("SYSTEMD_EXEC_PID");
  return pid != nullptr && strtol(pid, nullptr, 10) == getpid();
}

struct RunCgroups::Controller {
  const char *limit, *name;
  FilesToFill first, second;  // by version
};

std::vector<RunCgroups::Controller> RunCgroups::controllersOf(const config::ResourceLimits& limits) {
  std::vector<Controller> controllers;
  if (!limits.memory.empty()) {
    auto bytes = std::to_string(config::memoryBytes(limits.memory));
    controllers.push_back({"memory",
                           "memory",
                           {{"memory.limit_in_bytes", bytes}, {"memory.memsw.limit_in_bytes", bytes}},
                           {{"memory.max", bytes}, {"memory.swap.max", "0"}}});
  }
  if (limits.pids) {
    auto most = std::to_string(*limits.pids + ofTheSandbox);
    controllers.push_back({"pids", "pids", {{"pids.max", most}}, {{"pids.max", most}}});
  }
  if (limits.cpus) {
    auto quota = std::to_string(static_cast<uint64_t>(*limits.cpus * cpuPeriod));
    auto period = std::to_string(cpuPeriod);
    controllers.push_back({"cpus",
                           "cpu",
                           {{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", quota}},
                           {{"cpu.max", quota + " " + period}}});
  }
  return controllers;
}

OrRefusal<RunCgroups::Group> RunCgroups::groupFor(const Controller& controller) const {
  auto own = textOf(files.own);
  auto mounts = readMounts(textOf(files.mounts));
  std::string base, name = controller.name;
  bool second = false, inLeaf = false;
  if (auto group = ownGroup(own, "")) {
    inLeaf = group->ends_with(leaf);
    if (inLeaf) group = group->substr(0, group->rfind('/'));
    if (auto folder = folderOf(mounts, "cgroup2", "", group->empty() ? "/" : *group)) {
      if (has(wordsOf(textOf(*folder + "/cgroup.controllers")), name)) base = *folder, second = true;
    }
  }
  if (base.empty()) {
    auto group = ownGroup(own, name);
    auto folder = group ? folderOf(mounts, "cgroup", name, *group) : std::nullopt;
    if (!folder) return refusal(controller.limit, fmt::format("the daemon has no control group for {}", name));
    base = *folder;
  }
  // systemd puts a new daemon where the former was, which the kernel refuses in a group that has been divided.
  if (second && files.service && !inLeaf) {
    return refusal(controller.limit,
                   "systemd could not start the daemon again in a control group that has been divided; this takes a "
                   "systemd of 254 or later, and a unit with DelegateSubgroup=" +
                       std::string(leaf.substr(1)));
  }
  if (second && !makeRoom(base, name)) {
    return refusal(controller.limit,
                   fmt::format("the control group {} is not the daemon's to divide: {}", base, strerror(errno)));
  }
  return Group{base, second};
}

OrRefusal<std::vector<std::string>> RunCgroups::make(const std::string& run,
                                                     const config::ResourceLimits& limits) const {
  std::vector<std::string> folders;
  for (auto& controller : controllersOf(limits)) {
    auto group = groupFor(controller);
    auto refused = group.ok() ? Refusal() : group.refusal();
    if (group.ok()) {
      auto folder = group.value().folder + "/open-conduit-" + run;
      // Controllers can share a hierarchy, and have one in the second version: then a folder, too.
      if (!has(folders, folder + inner)) {
        refused = makeAnew(folder, controller.limit);
        if (refused.reason.empty()) folders.push_back(folder + inner);
      }
      auto& files = group.value().second ? controller.second : controller.first;
      if (refused.reason.empty()) refused = setLimit(folder, files, controller.limit);
    }
    if (refused.reason.empty()) continue;
    remove(folders);
    return refused;
  }
  return folders;
}

std::vector<std::string> RunCgroups::remove(const std::vector<std::string>& folders) {
  std::vector<std::string> met;
  for (auto& agents : folders) {
    auto folder = agents.substr(0, agents.rfind('/'));
    // The first version, and the second before Linux 6.12, count where the process was; later ones where the limit is.
    auto killedBefore = numberIn(textOf(agents + "/memory.oom_control"), "oom_kill");
    auto refused =
        std::max(numberIn(textOf(agents + "/pids.events"), "max"), numberIn(textOf(folder + "/pids.events"), "max"));
    killAll(agents);
    removeFolder(agents);
    auto killed = killedIn(folder) + killedBefore;
    if (killed != 0) met.push_back(fmt::format("limits.memory: the kernel killed {} of its processes", killed));
    if (refused != 0) met.push_back(fmt::format("limits.pids: {} more processes were refused", refused));
    removeFolder(folder);
  }
  return met;
}

Refusal RunCgroups::whyNot(const config::ResourceLimits& limits) const {
  auto made = make("doctor", limits);
  if (!made.ok()) return made.refusal();
  remove(made.value());
  return {};
}

std::vector<std::string> RunCgroups::available() const {
  std::vector<std::string> names;
  auto tryOne = [&](const char* name, const config::ResourceLimits& limits) {
    if (whyNot(limits).reason.empty()) names.push_back(name);
  };
  config::ResourceLimits memory, pids, cpus;
  memory.memory = "1g";
  pids.pids = 1000;
  cpus.cpus = 1;
  tryOne("memory", memory);
  tryOne("pids", pids);
  tryOne("cpus", cpus);
  return names;
}

}  // namespace oc::work
