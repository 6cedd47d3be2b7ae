// Sockets that lead out of a process sandbox. Linux's srt cannot allow a socket by its path, so those that would let a
// run start something outside are hidden, and so is what could come to be in their place.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace oc::sandbox {

struct HiddenSockets {
  // Sockets, and directories full of them. Lifted by their exact name only.
  std::vector<std::string> paths;
  // Directories that are hidden as a whole because a service makes its socket anew in them when it restarts, which
  // would take a mount over the old one away; what else is in them comes back by `shown`.
  std::vector<std::string> directories;
  std::vector<std::string> shown;
};

// From what the environment names, from well-known places, and from what is bound on this machine right now. `lifted`:
// paths in normal form that the policy's `sockets` names. `bound`: the kernel's list; another file for tests.
HiddenSockets hiddenSockets(const std::map<std::string, std::string>& environ, const std::string& home,
                            const std::vector<std::string>& lifted, const std::string& bound = "/proc/net/unix");

}  // namespace oc::sandbox
