#include "address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace oc::gateway {

namespace {

Address ipv4(const uint8_t* bytes) {
  Address result;
  std::copy_n(bytes, 4, result.bytes.begin());
  return result;
}

Network known(std::string_view text) { return *parseNetwork(text); }

bool isIn(const Address& address, const std::vector<Network>& networks) {
  return std::any_of(networks.begin(), networks.end(), [&](const Network& n) { return n.contains(address); });
}

// 192.168.1.1/24 names a machine, not a network.
bool isAligned(const Network& network) { return networkOf(network.address, network.bits).address == network.address; }

}  // namespace

std::string Address::toString() const {
  char buffer[INET6_ADDRSTRLEN];
  return inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), buffer, sizeof(buffer));
}

std::optional<Address> parseAddress(std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
  std::string terminated(text);
  Address result;
  if (inet_pton(AF_INET, terminated.c_str(), result.bytes.data()) == 1) return result;
  result.v6 = true;
  if (inet_pton(AF_INET6, terminated.c_str(), result.bytes.data()) == 1) return result;
  return std::nullopt;
}

std::optional<Address> addressOf(const sockaddr* socketAddress) {
  if (socketAddress == nullptr) return std::nullopt;
  if (socketAddress->sa_family == AF_INET) {
    auto& in = reinterpret_cast<const sockaddr_in*>(socketAddress)->sin_addr;
    return ipv4(reinterpret_cast<const uint8_t*>(&in));
  }
  if (socketAddress->sa_family != AF_INET6) return std::nullopt;
  Address result;
  result.v6 = true;
  std::memcpy(result.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(socketAddress)->sin6_addr, 16);
  return result;
}

socklen_t toSocketAddress(const Address& address, uint16_t port, sockaddr_storage& storage) {
  std::memset(&storage, 0, sizeof(storage));
  if (address.v6) {
    auto& in = reinterpret_cast<sockaddr_in6&>(storage);
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.bytes.data(), 16);
    return sizeof(in);
  }
  auto& in = reinterpret_cast<sockaddr_in&>(storage);
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  std::memcpy(&in.sin_addr, address.bytes.data(), 4);
  return sizeof(in);
}

bool Network::contains(const Address& other) const {
  if (other.v6 != address.v6) return false;
  return networkOf(other, bits).address == networkOf(address, bits).address;
}

std::string Network::toString() const { return address.toString() + "/" + std::to_string(bits); }

std::optional<Network> parseNetwork(std::string_view text) {
  auto slash = text.find('/');
  auto address = parseAddress(text.substr(0, slash));
  if (!address) return std::nullopt;
  Network result{*address, address->v6 ? 128u : 32u};
  if (slash == std::string_view::npos) return result;
  auto digits = text.substr(slash + 1);
  bool legal = !digits.empty() && digits.size() <= 3 && (digits[0] != '0' || digits.size() == 1) &&
               std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!legal) return std::nullopt;
  auto bits = static_cast<unsigned>(std::stoul(std::string(digits)));
  if (bits > result.bits) return std::nullopt;
  result.bits = bits;
  if (!isAligned(result)) return std::nullopt;
  return result;
}

Network networkOf(const Address& address, unsigned bits) {
  Network result{address, bits};
  for (unsigned i = 0; i < 16; ++i) {
    unsigned kept = bits >= (i + 1) * 8 ? 8 : bits > i * 8 ? bits - i * 8 : 0;
    result.address.bytes[i] &= static_cast<uint8_t>(0xFF00 >> kept);
  }
  return result;
}

std::optional<Address> embeddedIpv4(const Address& address) {
  static const auto mapped = known("::ffff:0:0/96"), compatible = known("::/96"), translated = known("::ffff:0:0:0/96"),
                    nat64 = known("64:ff9b::/96"), nat64Local = known("64:ff9b:1::/48"), sixToFour = known("2002::/16"),
                    teredo = known("2001::/32");
  if (!address.v6) return std::nullopt;
  auto& b = address.bytes;
  if (mapped.contains(address) || compatible.contains(address) || translated.contains(address) ||
      nat64.contains(address) || nat64Local.contains(address)) {
    return ipv4(&b[12]);
  }
  if (sixToFour.contains(address)) return ipv4(&b[2]);
  if (teredo.contains(address)) {
    uint8_t client[4];
    for (int i = 0; i < 4; ++i) client[i] = static_cast<uint8_t>(~b[12 + i]);
    return ipv4(client);
  }
  return std::nullopt;
}

Reach reachOf(const Address& address) {
  static const std::vector<Network> never = {
      known("0.0.0.0/8"), known("127.0.0.0/8"),     known("224.0.0.0/4"), known("255.255.255.255/32"),
      known("::/128"),    known("::1/128"),         known("ff00::/8"),    known("::ffff:0:0/96"),
      known("::/96"),     known("::ffff:0:0:0/96"),
  };
  static const std::vector<Network> linkLocal = {known("169.254.0.0/16"), known("fe80::/10")};
  static const std::vector<Network> special = {
      known("10.0.0.0/8"),   known("172.16.0.0/12"), known("192.168.0.0/16"), known("100.64.0.0/10"),
      known("192.0.0.0/24"), known("198.18.0.0/15"), known("192.88.99.0/24"), known("240.0.0.0/4"),
      known("2001::/32"),    known("2001:2::/48"),   known("2001:10::/28"),   known("2001:20::/28"),
      known("2002::/16"),
  };
  static const auto globalUnicast = known("2000::/3");
  if (isIn(address, never)) return Reach::Never;
  if (isIn(address, linkLocal)) return Reach::LinkLocal;
  if (isIn(address, special)) return Reach::Private;
  // What is not handed out for the internet (RFC 4291, 2.4) is not part of it: unique local, NAT64, site-local, …
  if (address.v6 && !globalUnicast.contains(address)) return Reach::Private;
  return Reach::Public;
}

}  // namespace oc::gateway
