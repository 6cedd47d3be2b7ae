// What lies in a hostile object directory.
#pragma once

#include <string>

namespace oc::git {

// The name, from `objects` on, of the first entry that is no regular file or directory, or that lies deeper than git
// puts any; empty when there is none. git would open a named pipe and wait for a writer for ever, and follow a link to
// one.
std::string oddObjectFile(const std::string& objects);

}  // namespace oc::git
