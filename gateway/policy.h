// The one place that decides where a run may connect to. Plain requests, CONNECT and doctor's questions all ask here,
// and what is decided on is what is dialed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "address.h"
#include "base/host_pattern.h"

namespace oc::gateway {

// Where a client wants to go, read once. From here on nobody looks at the client's text again.
struct Target {
  std::string host;  // a name in lower case without its trailing dot, or an address
  uint16_t port = 0;
  std::optional<Address> literal;  // when `host` is an address

  std::string toString() const;  // "host:port", with brackets around IPv6
};

// "example.org:443", "192.0.2.1:80", "[2001:db8::1]:443". The grammar is that of network.allow without its wildcards,
// so user names, percent signs, spaces, numbers that resolvers take for addresses, and IPv4 in IPv6's clothes are no
// targets. Without a port it gets `defaultPort`; where that is 0, a port is needed. Nothing on an error, and `why` says
// which.
std::optional<Target> parseTarget(std::string_view authority, uint16_t defaultPort, std::string& why);

struct Verdict {
  bool allowed = false;
  // As NetworkRecord.reason has it: not_allowed, private_address, own_network. Empty when allowed.
  std::string reason;
  // For a person: why, and what to do.
  std::string why;
  std::string fix;
};

class Policy {
 public:
  struct Parts {
    std::vector<HostPattern> allow;
    std::vector<Network> privateRanges;  // private ranges that allowed names may resolve to
    std::vector<Network> refuse;         // never dialed: the engine host's addresses
    std::vector<Network> own;            // never dialed: the gateway's own networks
  };
  explicit Policy(Parts parts);

  // Before anything is asked or dialed. A name that is refused here is never looked up. A literal address needs an
  // entry of its own, and then only what is never dialed is refused.
  Verdict decide(const Target& target) const;

  // For one address that an allowed *name* resolved to.
  Verdict decideResolved(const Target& target, const Address& address) const;

  // Whether some entry is about this host, whatever its port.
  bool names(const std::string& host) const;

  const Parts& parts() const { return all; }

 private:
  bool isListed(const Target& target) const;
  // Refuses what no entry can allow.
  std::optional<Verdict> refusedAlways(const Address& address) const;

  Parts all;
};

}  // namespace oc::gateway
