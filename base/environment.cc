#include "environment.h"

#include <unistd.h>

#include <string_view>

extern char** environ;

namespace oc {

std::map<std::string, std::string> ownEnvironment() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals != std::string_view::npos) result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

}  // namespace oc
