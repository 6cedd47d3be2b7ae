// Hosts as an operator lists them in network.allow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oc {

// "example.org" (any port), "example.org:443" (that port only), "*.example.org" (any name under it, not
// itself), an IPv4 address, "[2001:db8::1]" or "[2001:db8::1]:443".
struct HostPattern {
  std::string host;  // lower case, without "*." and brackets and a trailing dot
  bool subdomains = false;
  std::optional<uint16_t> port;

  // `name` as a client wrote it: case and one trailing dot do not matter.
  bool matches(std::string_view name, uint16_t port) const;
  std::string toString() const;
  bool operator==(const HostPattern&) const = default;
};

// Nothing when it is not one of the forms, and `why` then says what is wrong with it, for a person.
std::optional<HostPattern> parseHostPattern(std::string_view text, std::string& why);

}  // namespace oc
