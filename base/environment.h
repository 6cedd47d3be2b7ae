// This process's environment.
#pragma once

#include <map>
#include <string>

namespace oc {

// As it is now; an entry without "=" is left out, and of a name that is there twice the first counts.
std::map<std::string, std::string> ownEnvironment();

}  // namespace oc
