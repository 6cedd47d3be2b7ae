// Doctor's questions about a connection.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "session.h"

namespace oc::github {

struct Check {
  std::string what, fix;
  bool ok = true, wanted = false;
};

// `needs`: permissions as "issues=write".
kj::Promise<std::vector<Check>> examine(Session& session, std::vector<std::string> repos,
                                        std::vector<std::string> needs);

}  // namespace oc::github
