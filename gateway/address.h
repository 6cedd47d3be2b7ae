// IP addresses and networks, and which of them lie on the public internet.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oc::gateway {

// An address as it is dialed. IPv4 has its four bytes first, the rest is zero.
struct Address {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};

  std::string toString() const;
  bool operator==(const Address&) const = default;
};

// "192.0.2.1" in four decimal parts, or "2001:db8::1" without brackets and zone; nothing otherwise.
std::optional<Address> parseAddress(std::string_view text);
// Nothing for other families than IPv4 and IPv6.
std::optional<Address> addressOf(const sockaddr* socketAddress);
// Fills `storage` and returns its length.
socklen_t toSocketAddress(const Address& address, uint16_t port, sockaddr_storage& storage);

struct Network {
  Address address;
  unsigned bits = 0;

  bool contains(const Address& other) const;
  std::string toString() const;
};

// "10.0.0.0/8", "fc00::/7", or an address alone, which is a network of one. Nothing when it is neither, or has bits set
// behind its length.
std::optional<Network> parseNetwork(std::string_view text);
// The network of `bits` that `address` is in.
Network networkOf(const Address& address, unsigned bits);

enum class Reach {
  Public,     // may be dialed for a name that is allowed
  Private,    // only where the operator says so: private, shared and special-purpose ranges
  LinkLocal,  // never for a name: a cloud's metadata service lives there
  Never,      // this machine itself, groups, everybody: never dialed
};

// By the registries of special-purpose addresses (RFC 6890 and its updates). The ranges for documentation count as
// public: nobody routes them, and tests have their made-up internet there.
Reach reachOf(const Address& address);

// The IPv4 address that an IPv6 address stands for and that a translator or tunnel would reach: mapped, compatible,
// NAT64, 6to4, Teredo. It has to be judged as well.
std::optional<Address> embeddedIpv4(const Address& address);

}  // namespace oc::gateway
