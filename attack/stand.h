// The targets: files, sockets, ports, kernel objects, and a process to reach into, which is this one. It is what the
// attacks find when nothing is between.
#pragma once

#include <string>
#include <vector>

namespace oc::battery {

// Words as "name=directory": own, beside, outside, runtime, root, and any number of repository. Each is a directory
// that is there and empty. Also credential=FILE, a file that is the operator's. Puts everything up, prints the targets
// (attack.h) and a line "ready" to standard output, and then serves until standard input ends; a line there puts up
// anew what was spoilt, and prints again. At the end what it made outside of the directories is gone.
int runStand(const std::vector<std::string>& words);

}  // namespace oc::battery
