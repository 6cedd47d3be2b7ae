#include "formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/host_pattern.h"
#include "base/text.h"
#include "format_parts.h"
#include "operations.h"

namespace oc::config {

namespace {

using Problem = std::optional<FormatProblem>;

// What is shown of a text that is wrong.
constexpr size_t shownLimit = 60;
// Names become parts of file names, labels and command lines.
constexpr size_t nameLimit = 64, titleLimit = 200, textLimit = 64 << 10, operationLimit = 128;

bool isLetterOrDigit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80;
}
bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool allOf(std::string_view text, std::string_view besides) {
  return std::all_of(text.begin(), text.end(),
                     [besides](char c) { return isLetterOrDigit(c) || besides.find(c) != std::string_view::npos; });
}

Problem problem(std::string message, std::string fix) { return FormatProblem{std::move(message), std::move(fix)}; }

Problem checkControls(std::string_view text) {
  if (!hasControlCharacters(text)) return std::nullopt;
  return problem(fmt::format("{} has control characters in it", inQuotes(text)), "delete them");
}

Problem checkText(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return problem("a NUL can't be in it", "delete \\u0000");
  if (text.size() > textLimit) return problem(fmt::format("it is longer than {} KiB", textLimit >> 10), "shorten it");
  return std::nullopt;
}

Problem checkTitle(std::string_view text) {
  if (text.empty()) return problem("it is empty", "write a word or two");
  if (auto found = checkControls(text)) return found;
  if (text.size() > titleLimit) return problem(fmt::format("it is longer than {} bytes", titleLimit), "shorten it");
  return std::nullopt;
}

Problem checkName(std::string_view text) {
  constexpr const char* rule = "use letters, digits, '.', '_' and '-', beginning with a letter or a digit";
  if (text.empty()) return problem("the name is empty", rule);
  if (auto found = checkControls(text)) return found;
  if (text.size() > nameLimit) {
    return problem(fmt::format("{} is longer than {} characters", inQuotes(text), nameLimit), "shorten it");
  }
  if (!allOf(text, "._-"))
    return problem(fmt::format("{} has characters that a name can't have", inQuotes(text)), rule);
  if (!isLetterOrDigit(text.front()))
    return problem(fmt::format("{} begins with '{}'", inQuotes(text), text.front()), rule);
  return std::nullopt;
}

Problem checkContext(std::string_view text) {
  if (text.empty() || text.size() > nameLimit || !isLetterOrDigit(text.front()) || !allOf(text, "._+-")) {
    return problem(fmt::format("{} can't be the name of a Docker context", inQuotes(text)),
                   "`docker context ls` lists them");
  }
  return std::nullopt;
}

Problem checkHost(std::string_view text) {
  std::string why;
  if (parseHostPattern(text, why)) return std::nullopt;
  return problem(fmt::format("{} is no host: {}", inQuotes(text), why), "write host, host:port or *.domain");
}

Problem checkEnvironmentName(std::string_view text) {
  bool legal = !text.empty() && text.size() <= operationLimit && !isDigit(text.front()) && allOf(text, "_");
  if (legal) return std::nullopt;
  return problem(fmt::format("{} can't be the name of an environment variable", inQuotes(text)),
                 "use letters, digits and '_', not beginning with a digit");
}

Problem checkSecretReference(std::string_view text) {
  constexpr const char* forms = "write keyring:NAME, file:/path or env:NAME";
  auto colon = text.find(':');
  auto store = text.substr(0, colon), name = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (colon == std::string_view::npos || (store != "keyring" && store != "file" && store != "env")) {
    // It may be the secret itself: not shown.
    return problem("this is no reference to a secret; a secret's value is never in the config", forms);
  }
  if (store == "file") return checkPath(name, {});
  return store == "env" ? checkEnvironmentName(name) : checkName(name);
}

bool isOperationPart(std::string_view part) {
  return !part.empty() && std::islower(static_cast<unsigned char>(part.front())) &&
         std::all_of(part.begin(), part.end(),
                     [](unsigned char c) { return std::islower(c) || isDigit(c) || c == '_'; });
}

Problem checkOperation(std::string_view text) {
  bool toolset = text.starts_with('@');
  std::string_view rest = toolset ? text.substr(1) : text;
  size_t parts = 0;
  bool legal = text.size() <= operationLimit;
  for (size_t at = 0; legal && at <= rest.size(); ++parts) {
    size_t end = std::min(rest.find('.', at), rest.size());
    legal = isOperationPart(rest.substr(at, end - at));
    at = end + 1;
  }
  if (!legal || parts < 2) {
    return problem(fmt::format("{} is no operation", inQuotes(text)),
                   "operations look like github.git.credential, toolsets like @github.author");
  }
  auto& toolsets = knownToolsets();
  if (!toolset || std::find(toolsets.begin(), toolsets.end(), text) != toolsets.end()) return std::nullopt;
  auto close = closest(text, toolsets);
  return problem(fmt::format("there is no toolset {}", inQuotes(text)),
                 close.empty() ? fmt::format("the toolsets are {}", fmt::join(toolsets, ", "))
                               : fmt::format("did you mean {}?", close));
}

// Docker takes no less than 6 MiB. The most is what a JSON number has exactly: 8 PiB.
constexpr uint64_t leastMemory = 6ull << 20, mostMemory = 1ull << 53;

unsigned memoryShift(char unit) {
  switch (std::tolower(static_cast<unsigned char>(unit))) {
    case 'k': return 10;
    case 'm': return 20;
    case 'g': return 30;
    default: return 0;
  }
}

Problem checkMemory(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && isDigit(text[digits])) ++digits;
  auto unit = text.substr(digits);
  bool legal =
      digits > 0 && digits <= 15 && text.front() != '0' &&
      (unit.empty() || (unit.size() == 1 && std::string_view("bkmgBKMG").find(unit[0]) != std::string_view::npos));
  if (!legal) {
    return problem(fmt::format("{} is no amount of memory", inQuotes(text)),
                   "write a number and b, k, m or g, as in \"8g\"");
  }
  if (std::stoull(std::string(text.substr(0, digits))) > mostMemory >> memoryShift(text.back()))
    return problem(fmt::format("{} is more than any machine has", inQuotes(text)),
                   "write what a run may use, as in \"8g\"");
  if (memoryBytes(text) < leastMemory) {
    return problem(fmt::format("{} is too little to start anything in", inQuotes(text)),
                   fmt::format("write \"{}m\" or more", leastMemory >> 20));
  }
  return std::nullopt;
}

Problem checkRepository(std::string_view text) {
  auto slash = text.find('/');
  bool legal = slash != std::string_view::npos && slash > 0 && slash + 1 < text.size() && text.size() <= 200 &&
               allOf(text.substr(0, slash), "_-") && allOf(text.substr(slash + 1), "._-");
  if (legal) return std::nullopt;
  return problem(fmt::format("{} is no repository's name", inQuotes(text)), "write owner/name");
}

Problem checkAppId(std::string_view text) {
  if (!text.empty() && text.size() <= nameLimit && allOf(text, "._-")) return std::nullopt;
  return problem(fmt::format("{} is no App's id", inQuotes(text)), "the App's settings page shows it, a number");
}

Problem checkApiUrl(std::string_view text) {
  constexpr std::string_view scheme = "https://";
  auto rest = text.starts_with(scheme) ? text.substr(scheme.size()) : std::string_view();
  auto path = rest.substr(std::min(rest.size(), rest.find('/')));
  auto host = rest.substr(0, rest.size() - path.size());
  auto colon = host.find(':');
  auto port = colon == std::string_view::npos ? std::string_view("443") : host.substr(colon + 1);
  bool legalPort =
      !port.empty() && port.size() <= 5 && port.front() != '0' && std::all_of(port.begin(), port.end(), isDigit);
  bool legal = text.size() <= 200 && colon != 0 && !host.empty() && allOf(host.substr(0, colon), "._-") && legalPort &&
               allOf(path, "/._-") && path.find("..") == std::string_view::npos;
  if (legal) return std::nullopt;
  return problem(fmt::format("{} is no address of an API", inQuotes(text)),
                 "write it like \"https://github.example.org/api/v3\"");
}

}  // namespace

std::string inQuotes(std::string_view text) { return "\"" + shortened(printable(text), shownLimit) + "\""; }

uint64_t memoryBytes(std::string_view text) { return std::stoull(std::string(text)) << memoryShift(text.back()); }

std::optional<FormatProblem> checkFormat(Format format, std::string_view text) {
  switch (format) {
    case Format::Text: return checkText(text);
    case Format::Title: return checkTitle(text);
    case Format::Name: return checkName(text);
    case Format::ContextName: return checkContext(text);
    case Format::HostPath: return checkPath(text, {.home = true});
    case Format::AbsolutePath: return checkPath(text, {});
    case Format::GrantPath: return checkPath(text, {.home = true, .placeholders = {"workspace", "run"}});
    case Format::SocketPath: return checkPath(text, {.home = true, .placeholders = {"toolbelt", "workspace", "run"}});
    case Format::Host: return checkHost(text);
    case Format::Network: return checkNetwork(text);
    case Format::EnvironmentName: return checkEnvironmentName(text);
    case Format::SecretReference: return checkSecretReference(text);
    case Format::Operation: return checkOperation(text);
    case Format::Image: return checkImage(text);
    case Format::Branch: return checkBranch(text);
    case Format::Memory: return checkMemory(text);
    case Format::Repository: return checkRepository(text);
    case Format::AppId: return checkAppId(text);
    case Format::ApiUrl: return checkApiUrl(text);
  }
  return std::nullopt;
}

std::string_view formatWords(Format format) {
  switch (format) {
    case Format::Text: return "text";
    case Format::Title: return "text for people, up to 200 bytes";
    case Format::Name: return "a name: letters, digits, `.`, `_`, `-`, up to 64, beginning with a letter or a digit";
    case Format::ContextName: return "a Docker context's name";
    case Format::HostPath: return "a path: `/…` or `~/…`";
    case Format::AbsolutePath: return "an absolute path: `/…`";
    case Format::GrantPath: return "a path: `/…`, `~/…`, `{workspace}…` or `{run}…`";
    case Format::SocketPath: return "a socket's path: `/…`, `~/…`, `{workspace}…`, `{run}…`, or `{toolbelt}` alone";
    case Format::Host: return "a host: `host`, `host:port` or `*.domain`; an IPv6 address in brackets";
    case Format::Network: return "a network: `10.1.0.0/16`, `fd00:1::/32`";
    case Format::EnvironmentName: return "an environment variable's name";
    case Format::SecretReference: return "a secret's place: `keyring:NAME`, `file:/path` or `env:NAME`";
    case Format::Operation: return "an operation (`github.git.credential`) or a toolset (`@github.author`)";
    case Format::Image: return "an image with its digest: `name@sha256:…`, or its id: `sha256:…`";
    case Format::Branch: return "a branch's name; `{work}`, `{run}` and `{number}` stand for what they say";
    case Format::Memory: return "a number and `b`, `k`, `m` or `g`, at least `6m`: `8g`";
    case Format::Repository: return "`owner/name`";
    case Format::AppId: return "an App's id";
    case Format::ApiUrl: return "an address that begins with `https://`";
  }
  return "text";
}

std::string_view formatPattern(Format format) {
  switch (format) {
    case Format::Text: return "";
    case Format::Title: return "^[^\\u0000-\\u001f\\u007f]+$";
    case Format::Name: return "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
    case Format::ContextName: return "^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$";
    case Format::HostPath: return "^(/|~(/|$))";
    case Format::AbsolutePath: return "^/";
    case Format::GrantPath: return "^(/|(~|\\{workspace\\}|\\{run\\})(/|$))";
    case Format::SocketPath: return "^(/|(~|\\{workspace\\}|\\{run\\})(/|$)|\\{toolbelt\\}$)";
    case Format::Host: return "^(\\*\\.)?[A-Za-z0-9_.-]+(:[1-9][0-9]{0,4})?$|^\\[[0-9A-Fa-f:.]+\\](:[1-9][0-9]{0,4})?$";
    case Format::Network: return "^[0-9A-Fa-f:.]+/(0|[1-9][0-9]{0,2})$";
    case Format::EnvironmentName: return "^[A-Za-z_][A-Za-z0-9_]{0,127}$";
    case Format::SecretReference:
      return "^(keyring:[A-Za-z0-9][A-Za-z0-9._-]{0,63}|file:/.+|env:[A-Za-z_][A-Za-z0-9_]{0,127})$";
    case Format::Operation: return "^@?[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+$";
    case Format::Image: return "^([^@\\s]+@)?sha256:[0-9a-f]{64}$";
    case Format::Branch: return "^[^\\s~^:?*\\[\\\\]+$";
    case Format::Memory: return "^[1-9][0-9]{0,14}[bkmgBKMG]?$";
    case Format::Repository: return "^[A-Za-z0-9_-]+/[A-Za-z0-9._-]+$";
    case Format::AppId: return "^[A-Za-z0-9._-]{1,64}$";
    case Format::ApiUrl: return "^https://[A-Za-z0-9._-]+(:[1-9][0-9]{0,4})?(/[A-Za-z0-9/._-]*)?$";
  }
  return "";
}

}  // namespace oc::config
