// What `work new` asks for, checked before the daemon is bothered.
#pragma once

#include <string>

#include "cli/world.h"

namespace oc::cli {

struct RequestWords {
  std::string binding, title, bodyFile;
};

struct Request {
  std::string scope, binding, title, body;
};

// Throws wrongUsage naming the option: a binding that is not SCOPE/BINDING, a title that is too long or has control
// characters, a body file that cannot be read or has more than 16 MiB.
Request readRequest(World& world, const RequestWords& words);

}  // namespace oc::cli
