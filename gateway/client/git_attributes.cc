#include "git_attributes.h"

#include <algorithm>

namespace oc::client {

namespace {

bool isPlain(const std::string& value) {
  return !value.empty() && value.find_first_of(std::string("\n\0", 2)) == std::string::npos;
}

}  // namespace

std::map<std::string, std::string> gitAttributes(std::string_view input) {
  std::map<std::string, std::string> attributes;
  for (size_t at = 0; at < input.size();) {
    auto end = std::min(input.find('\n', at), input.size());
    auto line = input.substr(at, end - at);
    if (line.empty()) break;
    auto equals = line.find('=');
    if (equals != std::string_view::npos)
      attributes[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
    at = end + 1;
  }
  return attributes;
}

std::optional<std::string> gitCredentialLines(const std::string& username, const std::string& password) {
  if (!isPlain(username) || !isPlain(password)) return std::nullopt;
  return "username=" + username + "\npassword=" + password + "\n";
}

}  // namespace oc::client
