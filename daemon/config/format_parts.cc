#include "format_parts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <limits.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace oc::config {

namespace {

using Problem = std::optional<FormatProblem>;

Problem problem(std::string message, std::string fix) { return FormatProblem{std::move(message), std::move(fix)}; }

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "an absolute path (/…), ~/… or {workspace}/…".
std::string wantedForms(const PathForms& forms) {
  std::vector<std::string> words = {"an absolute path (/…)"};
  if (forms.home) words.push_back("~/…");
  for (auto& name : forms.placeholders) words.push_back(name == "toolbelt" ? "{toolbelt}" : "{" + name + "}/…");
  std::string result = words[0];
  for (size_t i = 1; i < words.size(); ++i) result += (i + 1 == words.size() ? " or " : ", ") + words[i];
  return result;
}

// `text` begins with '{'.
Problem checkPlaceholder(std::string_view text, const PathForms& forms) {
  auto close = text.find('}');
  if (close == std::string_view::npos)
    return problem(fmt::format("{}: the '{{' isn't closed", inQuotes(text)), "write " + wantedForms(forms));
  std::string name(text.substr(1, close - 1));
  auto rest = text.substr(close + 1);
  auto& known = forms.placeholders;
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    auto close = closest(name, known);
    return problem(fmt::format("there is no placeholder {} here", inQuotes("{" + name + "}")),
                   close.empty() ? "write " + wantedForms(forms) : "did you mean {" + close + "}?");
  }
  if (name == "toolbelt" && !rest.empty())
    return problem("{toolbelt} is a socket: nothing can follow it", "write {toolbelt} alone");
  if (!rest.empty() && rest[0] != '/') {
    return problem(fmt::format("{}: a '/' is missing behind {{{}}}", inQuotes(text), name), "write {" + name + "}/…");
  }
  return std::nullopt;
}

bool hasDotDot(std::string_view path) {
  for (size_t at = 0; at <= path.size();) {
    size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

Problem checkPathStart(std::string_view text, const PathForms& forms) {
  char first = text.front();
  if (first == '/') return std::nullopt;
  if (first == '{' && !forms.placeholders.empty()) return checkPlaceholder(text, forms);
  if (first == '~' && forms.home) {
    if (text.size() == 1 || text[1] == '/') return std::nullopt;
    return problem(fmt::format("{}: another user's home can't be named by ~", inQuotes(text)),
                   "write the path from / on");
  }
  if (first == '$')
    return problem(fmt::format("{}: variables are not expanded", inQuotes(text)), "write " + wantedForms(forms));
  if (first == '~')
    return problem(fmt::format("{}: ~ is not expanded here", inQuotes(text)), "write " + wantedForms(forms));
  return problem(fmt::format("{} is a relative path", inQuotes(text)), "write " + wantedForms(forms));
}

}  // namespace

Problem checkPath(std::string_view text, const PathForms& forms) {
  if (text.empty()) return problem("the path is empty", "write " + wantedForms(forms));
  if (hasControlCharacters(text)) {
    return problem(fmt::format("{} has control characters in it", inQuotes(text)), "delete them");
  }
  if (text.size() >= PATH_MAX)
    return problem(fmt::format("the path is longer than {} bytes", PATH_MAX - 1), "shorten it");
  if (auto found = checkPathStart(text, forms)) return found;
  if (hasDotDot(text))
    return problem(fmt::format("{} goes up by \"..\"", inQuotes(text)), "write the path that is meant, without ..");
  if (has(text, "*")) {
    return problem(fmt::format("{}: there are no patterns in paths", inQuotes(text)),
                   "name the directory that holds them");
  }
  return std::nullopt;
}

namespace {

struct Network {
  unsigned char bytes[16] = {};
  size_t bits = 0;  // of an address
};

std::optional<Network> parseAddress(const std::string& text) {
  Network network;
  if (inet_pton(AF_INET, text.c_str(), network.bytes) == 1) {
    network.bits = 32;
  } else if (inet_pton(AF_INET6, text.c_str(), network.bytes) == 1) {
    network.bits = 128;
  } else {
    return std::nullopt;
  }
  return network;
}

// Sets everything behind the first `kept` bits to 0; true when something was set there.
bool clearHostBits(Network& network, size_t kept) {
  bool changed = false;
  for (size_t i = kept; i < network.bits; ++i) {
    unsigned char mask = static_cast<unsigned char>(0x80u >> (i % 8));
    changed |= (network.bytes[i / 8] & mask) != 0;
    network.bytes[i / 8] = static_cast<unsigned char>(network.bytes[i / 8] & ~mask);
  }
  return changed;
}

}  // namespace

Problem checkNetwork(std::string_view text) {
  constexpr const char* form = "write an address and the number of its leading bits, as in 10.1.0.0/16";
  auto slash = text.find('/');
  auto digits = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
  bool isNumber = !digits.empty() && digits.size() <= 3 && (digits[0] != '0' || digits.size() == 1) &&
                  std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  if (!isNumber || has(text, std::string_view("\0", 1)))
    return problem(fmt::format("{} is no network", inQuotes(text)), form);
  auto network = parseAddress(std::string(text.substr(0, slash)));
  size_t kept = std::stoul(std::string(digits));
  if (!network || kept > network->bits) return problem(fmt::format("{} is no network", inQuotes(text)), form);
  if (!clearHostBits(*network, kept)) return std::nullopt;
  char shown[INET6_ADDRSTRLEN];
  if (inet_ntop(network->bits == 32 ? AF_INET : AF_INET6, network->bytes, shown, sizeof(shown)) == nullptr) {
    return problem(fmt::format("{} is no network", inQuotes(text)), form);
  }
  return problem(fmt::format("{} has bits of a host in it", inQuotes(text)), fmt::format("write {}/{}", shown, kept));
}

namespace {

bool isSmallLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// A component of an image's name: "acme", "my-agent", "a.b_c". Between letters and digits is one dot, one or two
// underscores, or any number of hyphens.
bool isImageComponent(std::string_view part) {
  if (part.empty() || !isSmallLetterOrDigit(part.front()) || !isSmallLetterOrDigit(part.back())) return false;
  for (size_t at = 0; at < part.size();) {
    size_t end = at;
    while (!isSmallLetterOrDigit(part[end])) ++end;
    auto between = part.substr(at, end - at);
    bool hyphens = between.find_first_not_of('-') == std::string_view::npos;
    if (!hyphens && between != "." && between != "_" && between != "__") return false;
    at = end + 1;
  }
  return true;
}

// The first component may be a registry: "localhost:5000", "Registry.example.org".
bool isRegistry(std::string_view part) {
  auto colon = part.find(':');
  auto host = part.substr(0, colon);
  auto port = colon == std::string_view::npos ? std::string_view("443") : part.substr(colon + 1);
  auto isHosts = [](unsigned char c) { return (std::isalnum(c) && c < 0x80) || c == '.' || c == '-'; };
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  return !host.empty() && host.front() != '-' && host.front() != '.' && !has(host, "..") &&
         std::all_of(host.begin(), host.end(), isHosts) && !port.empty() && port.size() <= 5 &&
         std::all_of(port.begin(), port.end(), isDigit);
}

bool isImageName(std::string_view name) {
  bool first = true;
  for (size_t at = 0; at <= name.size(); first = false) {
    size_t end = std::min(name.find('/', at), name.size());
    auto part = name.substr(at, end - at);
    bool last = end == name.size();
    if (!isImageComponent(part) && !(first && !last && isRegistry(part))) return false;
    at = end + 1;
  }
  return true;
}

bool isTag(std::string_view text) {
  auto isLetter = [](unsigned char c) { return (std::isalnum(c) && c < 0x80) || c == '_'; };
  return !text.empty() && text.size() <= 128 && isLetter(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) { return isLetter(c) || c == '.' || c == '-'; });
}

bool isDigest(std::string_view text) {
  return text.starts_with("sha256:") && text.size() == 71 &&
         std::all_of(text.begin() + 7, text.end(),
                     [](unsigned char c) { return std::isdigit(c) || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Problem checkImage(std::string_view text) {
  constexpr size_t imageNameLimit = 255;  // the engine's
  constexpr const char* fix =
      "use name@sha256:…; `docker inspect --format '{{index .RepoDigests 0}}' IMAGE` prints it. One that was only made here "
      "has an id, sha256:…: `docker inspect --format '{{.Id}}' IMAGE`";
  if (isDigest(text)) return std::nullopt;
  if (text.empty()) return problem("the image is empty", fix);
  if (hasControlCharacters(text) || has(text, " "))
    return problem(fmt::format("{} is no image's name", inQuotes(text)), fix);
  auto at = text.find('@');
  auto name = text.substr(0, at);
  // A colon behind the last slash is a tag's; one before it is a registry's port.
  auto slash = name.rfind('/');
  auto colon = name.rfind(':');
  bool tagged = colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  if (at == std::string_view::npos) {
    return problem(tagged ? fmt::format("{} is a tag, which can change under you", inQuotes(text))
                          : fmt::format("{} has no digest, so the image can change under you", inQuotes(text)),
                   fix);
  }
  auto digest = text.substr(at + 1);
  if (!isDigest(digest))
    return problem(fmt::format("{} is no digest", inQuotes(digest)),
                   "a digest is sha256: and 64 hexadecimal digits in small letters");
  if (tagged && !isTag(name.substr(colon + 1)))
    return problem(fmt::format("{} is no image's tag", inQuotes(name.substr(colon + 1))),
                   "leave it out: the digest says all");
  if (tagged) name = name.substr(0, colon);
  if (name.size() > imageNameLimit)
    return problem(fmt::format("the image's name is longer than {} bytes", imageNameLimit), fix);
  if (!isImageName(name)) return problem(fmt::format("{} is no image's name", inQuotes(name)), fix);
  return std::nullopt;
}

namespace {

constexpr const char* branchPlaceholders[] = {"{work}", "{run}", "{number}"};

// With something plain in the placeholders' stead, to be looked at as a branch.
Problem fillBranch(std::string_view text, std::string& filled) {
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '}') return problem(fmt::format("{}: a '}}' without its '{{'", inQuotes(text)), "");
    if (text[at] != '{') {
      filled += text[at++];
      continue;
    }
    auto close = text.find('}', at);
    if (close == std::string_view::npos) return problem(fmt::format("{}: the '{{' isn't closed", inQuotes(text)), "");
    auto name = text.substr(at, close + 1 - at);
    if (std::find(std::begin(branchPlaceholders), std::end(branchPlaceholders), name) == std::end(branchPlaceholders)) {
      return problem(fmt::format("there is no placeholder {} in a branch's name", inQuotes(name)),
                     "the placeholders are {work}, {run} and {number}");
    }
    filled += 'x';
    at = close + 1;
  }
  return std::nullopt;
}

// git-check-ref-format(1), for one branch.
bool isBranch(std::string_view name) {
  if (name.empty() || name.size() > 200 || name == "@" || name.front() == '-' || name.front() == '/') return false;
  // Git takes these names for something else in nearly every command.
  if (name == "HEAD" || name.starts_with("refs/")) return false;
  if (name.back() == '/' || name.back() == '.') return false;
  for (auto part : {"..", "//", "@{", "/.", " ", "~", "^", ":", "?", "*", "[", "\\"}) {
    if (has(name, part)) return false;
  }
  if (name.front() == '.' || name.ends_with(".lock") || has(name, ".lock/")) return false;
  return !hasControlCharacters(name);
}

}  // namespace

Problem checkBranch(std::string_view text) {
  std::string filled;
  if (auto found = fillBranch(text, filled)) return found;
  if (isBranch(filled)) return std::nullopt;
  return problem(fmt::format("git has no branches with the name {}", inQuotes(text)), "something like agent/{work}");
}

}  // namespace oc::config
