#include "host_pattern.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "text.h"

namespace oc {

namespace {

// RFC 1035, 2.3.4.
constexpr size_t nameLimit = 253, labelLimit = 63;

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view withoutTrailingDot(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool isIpv4(const std::string& text) {
  in_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

// The one way to write an IPv6 address (RFC 5952); nothing when it is none. A text with a zone is none.
std::optional<std::string> canonicalIpv6(std::string_view text) {
  in6_addr address;
  char buffer[INET6_ADDRSTRLEN];
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  if (inet_pton(AF_INET6, std::string(text).c_str(), &address) != 1) return std::nullopt;
  if (inet_ntop(AF_INET6, &address, buffer, sizeof(buffer)) == nullptr) return std::nullopt;
  return std::string(buffer);
}

bool isEmbeddedIpv4(std::string_view text) {
  in6_addr address;
  return inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1 && IN6_IS_ADDR_V4MAPPED(&address);
}

std::string labelProblem(std::string_view label) {
  if (label.empty()) return "it has an empty part between two dots";
  if (label.size() > labelLimit) return fmt::format("a part of it is longer than {} characters", labelLimit);
  for (char c : label) {
    bool legal = (c >= 'a' && c <= 'z') || isDigit(c) || c == '-' || c == '_';
    if (!legal) return fmt::format("'{}' can't be in a host's name", printable(std::string_view(&c, 1)));
  }
  if (label.front() == '-' || label.back() == '-') return "a part of it begins or ends with '-'";
  return "";
}

// Resolvers read "127.1", "0x7f.1" and "2130706433" as addresses, whatever they look like.
bool readsAsNumber(std::string_view label) {
  if (label.starts_with("0x")) return true;
  return !label.empty() && std::all_of(label.begin(), label.end(), isDigit);
}

// Empty when `name`, in lower case and without a trailing dot, can be the name of a host.
std::string nameProblem(std::string_view name) {
  if (name.empty()) return "the host's name is empty";
  if (name.size() > nameLimit) return fmt::format("a host's name has at most {} characters", nameLimit);
  std::string_view label;
  for (size_t at = 0; at <= name.size();) {
    size_t end = std::min(name.find('.', at), name.size());
    label = name.substr(at, end - at);
    auto problem = labelProblem(label);
    if (!problem.empty()) return problem;
    at = end + 1;
  }
  if (readsAsNumber(label)) return "it is a number, not a name; an IPv4 address is written as four decimal parts";
  return "";
}

// What people write when they mean a host but have a URL, a list or a shell in mind.
std::string shapeProblem(std::string_view text) {
  if (text.empty()) return "it is empty";
  if (text.size() > nameLimit + sizeof("*.:65535")) return "it is too long for a host";
  for (unsigned char c : text) {
    if (c == ' ' || c == '\t') return "it has a space in it; one entry is one host";
    if (c < 0x20 || c == 0x7F) return "it has a control character in it";
    if (c >= 0x80) return "it has characters beyond ASCII; write the name in its ASCII form (xn--…)";
  }
  auto has = [text](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (has("://")) return "it is a URL; write the host alone, without the scheme";
  if (has("@")) return "it has a user name ('@') in it; write the host alone";
  if (has("/")) return "it has a path or a network's size ('/') in it; write the host alone";
  if (has(",") || has(";")) return "it looks like a list; one entry is one host";
  if (text == "*" || text.starts_with("*:")) return "\"*\" would allow every host; list the hosts that are needed";
  if (text == "*." || text.starts_with("*.:")) return "\"*.\" names no domain; write \"*.\" and the domain after it";
  return "";
}

bool parsePort(std::string_view text, HostPattern& pattern, std::string& why) {
  bool digits = !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), isDigit);
  unsigned port = digits ? static_cast<unsigned>(std::stoul(std::string(text))) : 0;
  if (port < 1 || port > 65535 || text.front() == '0') {
    why = fmt::format("\"{}\" is no port; ports are numbers from 1 to 65535", text);
    return false;
  }
  pattern.port = static_cast<uint16_t>(port);
  return true;
}

bool parseBracketed(std::string_view text, HostPattern& pattern, std::string& why) {
  auto close = text.find(']');
  if (close == std::string_view::npos) {
    why = "the bracket '[' isn't closed";
    return false;
  }
  auto inner = text.substr(1, close - 1), rest = text.substr(close + 1);
  auto address = canonicalIpv6(inner);
  if (!address) {
    why = "what stands in brackets is no IPv6 address (zones can't be used)";
    return false;
  }
  if (isEmbeddedIpv4(inner)) {
    why = "it is an IPv4 address in IPv6's form; write the IPv4 address";
    return false;
  }
  pattern.host = *address;
  if (rest.empty()) return true;
  if (rest.front() != ':') {
    why = "only a port can follow the bracket ']'";
    return false;
  }
  return parsePort(rest.substr(1), pattern, why);
}

bool parseName(std::string_view text, HostPattern& pattern, std::string& why) {
  auto colon = text.find(':');
  if (colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos) {
      why = canonicalIpv6(text) ? "an IPv6 address is written in brackets: [" + std::string(text) + "]"
                                : "it has more than one ':' in it";
      return false;
    }
    if (!parsePort(text.substr(colon + 1), pattern, why)) return false;
    text = text.substr(0, colon);
  }
  if (text.starts_with("*.")) {
    pattern.subdomains = true;
    text.remove_prefix(2);
  }
  if (text.find('*') != std::string_view::npos) {
    why = "'*' can stand only at the beginning, as \"*.\" and a domain";
    return false;
  }
  pattern.host = lower(withoutTrailingDot(text));
  if (isIpv4(pattern.host)) {
    if (!pattern.subdomains && !text.ends_with('.')) return true;
    why = "an address has no names under it and no dot behind it";
    return false;
  }
  why = nameProblem(pattern.host);
  return why.empty();
}

bool isName(std::string_view name) { return nameProblem(name).empty(); }

}  // namespace

bool HostPattern::matches(std::string_view name, uint16_t toPort) const {
  if (port && *port != toPort) return false;
  if (host.find(':') != std::string::npos) {
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
    return canonicalIpv6(name) == host;
  }
  // Looked at as a whole: a NUL or an empty part before an allowed ending must not pass as a name under it.
  std::string wanted = lower(withoutTrailingDot(name));
  if (!subdomains) return wanted == host && (!isIpv4(host) || !name.ends_with('.'));
  return wanted.size() > host.size() + 1 && wanted.ends_with("." + host) && isName(wanted);
}

std::string HostPattern::toString() const {
  std::string result = subdomains ? "*." : "";
  result += host.find(':') != std::string::npos ? "[" + host + "]" : host;
  if (port) result += ":" + std::to_string(*port);
  return result;
}

std::optional<HostPattern> parseHostPattern(std::string_view text, std::string& why) {
  why = shapeProblem(text);
  if (!why.empty()) return std::nullopt;
  HostPattern pattern;
  bool parsed = text.front() == '[' ? parseBracketed(text, pattern, why) : parseName(text, pattern, why);
  if (!parsed) return std::nullopt;
  return pattern;
}

}  // namespace oc
