// What our things on an engine are called. Everything that is made carries the labels: by them it is found again, and
// other owners' things are told apart.
#pragma once

#include <string>
#include <string_view>

namespace oc::docker {

constexpr const char* ownerLabel = "io.openconduit.owner";
constexpr const char* runLabel = "io.openconduit.run";
constexpr const char* roleLabel = "io.openconduit.role";
constexpr const char* planLabel = "io.openconduit.plan";
// Of a run's container: the name of its gateway, where that was made ahead.
constexpr const char* gatewayLabel = "io.openconduit.gateway";

// Where the run's volume, which holds its gateway's sockets, is mounted in both containers.
constexpr const char* gatewayDirectory = "/open-conduit/gateway";

// Owners and runs are words that can be part of a name: 1 to 64 lower-case letters, digits and "-", beginning with a
// letter or a digit.
bool isProperName(std::string_view name);

// Of a gateway that was made ahead: such a word that begins with "g-", as no run's does.
bool isPreparedName(std::string_view name);

// The Engine's ids of containers: 64 hexadecimal digits. Whatever else it says becomes no path of a call.
bool isContainerId(std::string_view id);

// Only a hint for people who look at `docker ps`; nothing is found by it.
std::string containerName(const std::string& owner, const std::string& run, const std::string& role);
std::string volumeName(const std::string& owner, const std::string& run);
// One per owner, for all of its gateways.
std::string egressName(const std::string& owner);

}  // namespace oc::docker
