// What programs need of the system to run at all, where a policy lists everything else that is readable (read.only).
#pragma once

#include <string>
#include <vector>

namespace oc::sandbox {

// Programs and their libraries, and of /etc what finds them, names users, services and time, and trusts certificates;
// only what is there. Nothing of a home, /var, /run, /opt, /srv or /sys. Each by its name; where it is a link, the
// place that it leads to as well.
std::vector<std::string> systemPaths();

}  // namespace oc::sandbox
