// Limits of a run in a process sandbox, by the kernel's control groups: a group of the run's own for each controller,
// in the one that the daemon was given (delegated) by systemd, or by whoever made folders for its user. Both versions
// of control groups, also side by side.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "daemon/config/model.h"

namespace oc::work {

// Where the kernel's files are, and whether systemd started this very process as a service; others for tests.
struct CgroupFiles {
  std::string own = "/proc/self/cgroup", mounts = "/proc/self/mountinfo";
  bool service = isService();

  static bool isService();
};

class RunCgroups {
 public:
  // Processes that a run may have besides its limits.pids: srt, bubblewrap and the relays are in the group as well,
  // Node with its threads.
  static constexpr uint64_t ofTheSandbox = 64;

  explicit RunCgroups(CgroupFiles files = {}) : files(std::move(files)) {}

  // Folders of the run's own beneath its limits, into which its process tree is to go. Refuses (`sandbox_unavailable`)
  // a limit that cannot be had, naming the controller and who could give it; then none is left. Without limits: none.
  OrRefusal<std::vector<std::string>> make(const std::string& run, const config::ResourceLimits& limits) const;

  // Why these could not be had; empty when they could. Leaves nothing.
  Refusal whyNot(const config::ResourceLimits& limits) const;

  // What could be had, by the words of the config: "memory", "pids", "cpus". Leaves nothing.
  std::vector<std::string> available() const;

  // For when its process tree has ended: kills what may be left in them, then removes them. What of the limits it met,
  // a sentence each. Not being there is no failure.
  static std::vector<std::string> remove(const std::vector<std::string>& folders);

 private:
  struct Controller;
  struct Group {
    std::string folder;  // the daemon's own
    bool second;         // of the second version
  };
  static std::vector<Controller> controllersOf(const config::ResourceLimits& limits);
  OrRefusal<Group> groupFor(const Controller& controller) const;

  CgroupFiles files;
};

}  // namespace oc::work
