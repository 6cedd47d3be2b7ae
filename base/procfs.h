// What /proc says of a process, as far as a same-uid onlooker may see it when the process is not dumpable.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace oc {

struct ProcessStatus {
  std::string name;  // its first 15 bytes
  pid_t parent = 0;
  char state = '?';
  bool noNewPrivs = false;
  int seccomp = 0;                     // 2: a filter is in force
  std::string capEff, capPrm, capAmb;  // hex, as printed
  std::vector<pid_t> nsPids;           // one per pid namespace, outermost first
  bool hasNoCapabilities() const;
};

// From /proc/PID/status; nothing when there is no such process (any more).
std::optional<ProcessStatus> readProcessStatus(pid_t pid);

// Every process beneath `root` (not itself), by reading all parents once.
std::vector<pid_t> descendants(pid_t root);

// Where this program lies, and Open Conduit's other programs beside it.
std::string ownDirectory();

}  // namespace oc
