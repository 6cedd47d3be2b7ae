#include "profile.h"

namespace oc::srt {

kit::Profile profileOf(const Job& job) {
  kit::Profile profile;
  // Namespaces are needed, all but the network's, where srt's proxy lives. An instance that lacks one starts all the
  // same, to say why, and launches nothing (see machine.h).
  profile.networkNamespace = kit::Need::No;
  profile.freshProc = true;
  profile.landlockFiles = false;  // a filesystem rule of Landlock forbids mounts, and bubblewrap makes them
  profile.landlockScopes = kit::Need::Wanted;
  profile.seccomp = kit::SeccompList::Operator;
  profile.denyUnixSockets = false;
  profile.maxOpenFiles = 1u << 20;  // the agent's as well: as many as the operator may have
  profile.scratch = job.scratch;
  return profile;
}

}  // namespace oc::srt
