// What lies in a hostile object directory.
#pragma once

#include <string>

namespace oc::git {

struct OddObject {
  bool found = false;
  std::string name;  // from `objects` on; empty for that itself
  int error = 0;     // why a directory could not be opened
};

// The first entry that is no regular file or directory, or that lies deeper than git puts any, or a directory that its
// maker closed. git would open a named pipe and wait for a writer for ever, and follow a link to one.
OddObject oddObject(const std::string& objects);

}  // namespace oc::git
