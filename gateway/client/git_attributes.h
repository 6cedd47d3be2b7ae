// git's credential protocol: lines of name=value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace oc::client {

// What git says, up to an empty line. Of a name that is there twice, the last counts; a line without "=" says nothing.
std::map<std::string, std::string> gitAttributes(std::string_view input);

// What git is answered; nothing where a value is empty, or has what would be a line of its own for git.
std::optional<std::string> gitCredentialLines(const std::string& username, const std::string& password);

}  // namespace oc::client
