// An entry of network.allow and a name that a client asks for: what an entry opens is decided here a second time, in
// another way.
//
// An input is the entry, a line feed, the name, and two bytes of the port.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>

#include <string>

#include "base/host_pattern.h"

namespace {

void require(bool holds) {
  if (!holds) abort();
}

bool isHostCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

std::string lower(std::string text) {
  for (auto& c : text)
    if (c >= 'A' && c <= 'Z') c |= 0x20;
  return text;
}

// Labels before the last dot-separated ones, and nothing else: what may stand before ".domain".
bool isLabels(const std::string& text) {
  size_t length = 0;
  for (char c : text + ".") {
    if (c == '.') {
      if (length == 0 || length > 63) return false;
      length = 0;
    } else {
      if (!isHostCharacter(c)) return false;
      ++length;
    }
  }
  return true;
}

bool sameAddress(const std::string& one, const std::string& other) {
  in6_addr a, b;
  return one.find('\0') == one.npos && inet_pton(AF_INET6, one.c_str(), &a) == 1 &&
         inet_pton(AF_INET6, other.c_str(), &b) == 1 && IN6_ARE_ADDR_EQUAL(&a, &b);
}

// Whether `name` may be opened at all: an upper bound, which is what an operator relies on.
bool mayMatch(const oc::HostPattern& pattern, std::string name) {
  if (pattern.host.find(':') != pattern.host.npos) {
    if (name.size() > 1 && name.front() == '[' && name.back() == ']') name = name.substr(1, name.size() - 2);
    return !pattern.subdomains && sameAddress(name, pattern.host);
  }
  name = lower(name);
  if (!name.empty() && name.back() == '.') name.pop_back();
  if (!pattern.subdomains) return name == pattern.host;
  auto ending = "." + pattern.host;
  return name.size() > ending.size() && name.ends_with(ending) && name.size() <= 253 &&
         isLabels(name.substr(0, name.size() - ending.size()));
}

void checkReading(const oc::HostPattern& pattern) {
  std::string why;
  auto again = oc::parseHostPattern(pattern.toString(), why);
  require(again && *again == pattern);
  require(!pattern.host.empty() && pattern.host.size() <= 253 && pattern.port != 0);
  require(pattern.host.find_first_of("*/@%[] \t\r\n") == pattern.host.npos);
}

void checkMatching(const oc::HostPattern& pattern, const std::string& name, uint16_t port) {
  uint16_t open = pattern.port.value_or(port), closed = open == 1 ? 2 : static_cast<uint16_t>(open - 1);
  if (pattern.port) require(!pattern.matches(name, closed));
  bool matches = pattern.matches(name, open);
  require(!matches || mayMatch(pattern, name));
  // And it opens what it says.
  if (!pattern.subdomains) require(pattern.matches(pattern.host, open));
  if (pattern.subdomains) require(!pattern.matches(pattern.host, open));
  if (pattern.subdomains && pattern.host.size() < 250) require(pattern.matches("a." + pattern.host, open));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  uint16_t port = static_cast<uint16_t>(data[size - 2] << 8 | data[size - 1]);
  std::string text(reinterpret_cast<const char*>(data), size - 2);
  auto line = text.find('\n');
  auto entry = text.substr(0, line), name = line == text.npos ? entry : text.substr(line + 1);
  std::string why;
  auto pattern = oc::parseHostPattern(entry, why);
  require(pattern.has_value() || !why.empty());
  if (!pattern) return 0;
  checkReading(*pattern);
  checkMatching(*pattern, name, port == 0 ? 443 : port);
  return 0;
}
