// What an instance is for, from its command line; see proto/github.capnp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oc::github {

enum class Role { Connection, Webhook };

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

struct Job {
  Role role = Role::Connection;
  std::string api;  // "https://api.github.com", without a slash at its end
  HostPort apiHost;
  std::string caFile;  // besides, or rather instead of, the system's CAs; empty: the system's
  std::optional<HostPort> proxy;
  bool proxyHasExceptions = false;  // the API may be one of those that are reached without it
};

// Throws kit::UsageError.
Job parseJob(const std::vector<std::string>& words);
std::vector<std::string> jobWords(const Job& job);

// "https://host[:port][/path]" and nothing else; nothing when it is not of that form.
std::optional<HostPort> hostOfUrl(std::string_view url, std::string_view scheme, uint16_t defaultPort);

// The proxy of the environment (https_proxy, HTTPS_PROXY, all_proxy, ALL_PROXY) as host and port. Throws
// kit::UsageError when it is none that can be used.
std::optional<HostPort> proxyOfEnvironment();

}  // namespace oc::github
