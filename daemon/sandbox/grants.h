// A policy's path entries, made absolute and checked against what no policy can grant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/places.h"
#include "base/refusal.h"
#include "daemon/config/model.h"
#include "srt_settings.h"

namespace oc::sandbox {

struct Grant {
  std::string field;  // "write[1]", for messages
  std::string text;   // as written
  std::string path;   // absolute, in normal form, links as they are
  std::string real;   // where it leads
};

struct Grants {
  std::vector<Grant> write, readDeny, readAllow, sockets;  // `readAllow` has what read.only lists, too
};

// Refuses (`sandbox_denied`) an entry that is no path, and one of write, read.allow, read.only or sockets that
// - reaches into Open Conduit's own directories or config, other than this run's workspace, files and toolbelt;
// - reaches into the operator's claude;
// - leads, through a link that an agent could have made, to a place outside of what that agent may write.
OrRefusal<Grants> readGrants(const config::SrtPolicy& policy, const Places& places, const RunPlace& place,
                             const std::vector<std::string>& operatorsClaude);

// The same of a container's policy: `write`, and `readAllow` is its `read`. The operator's claude is the caller's to
// refuse.
OrRefusal<Grants> readContainerGrants(const config::ContainerPolicy& policy, const Places& places,
                                      const RunPlace& place);

// Open Conduit's own: the directories of `places`, and those of the run's `ownFiles` that lie elsewhere; and the other
// names that these have by mounts.
std::vector<std::string> ownPaths(const Places& places, const RunPlace& place);

}  // namespace oc::sandbox
