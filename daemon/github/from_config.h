// What the config says of GitHub, as this part takes it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "connection.h"
#include "daemon/config/model.h"
#include "intake.h"

namespace oc::hub {

ConnectionSpec specOf(const config::Connection& connection);

// The repositories whose issues become Work by this connection, each with its scope's routes, in their order.
std::vector<Source> sourcesOf(const config::Config& config, const std::string& connection);

// For doctor: the permissions that the operations of the connection's bindings need, as "issues=write", and those of
// reading issues where there is a source. A write covers its read.
std::vector<std::string> permissionsNeeded(const config::Config& config, const std::string& connection);

// For git in a run: B16's author and committer, where `author` is given, and the credential helper `helper` for
// `gitHost` alone, above every file's settings.
std::map<std::string, std::string> gitEnvironment(const Identity* author, const std::string& gitHost,
                                                  const std::string& helper);

}  // namespace oc::hub
