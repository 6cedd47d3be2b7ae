#include "job.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "providers/kit/kit.h"

namespace oc::github {

namespace {

bool isHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

bool isPathCharacter(char c) { return isHostCharacter(c) || c == '/'; }

std::string valueOf(const std::vector<std::string>& words, size_t& i) {
  if (i + 1 == words.size()) throw kit::UsageError{fmt::format("{}: its value is missing", printable(words[i]))};
  return words[++i];
}

}  // namespace

std::optional<HostPort> hostOfUrl(std::string_view url, std::string_view scheme, uint16_t defaultPort) {
  auto prefix = std::string(scheme) + "://";
  if (url.size() > 512 || !url.starts_with(prefix)) return std::nullopt;
  url.remove_prefix(prefix.size());
  auto path = url.find('/');
  auto authority = url.substr(0, path);
  auto rest = path == std::string_view::npos ? std::string_view() : url.substr(path);
  if (!std::all_of(rest.begin(), rest.end(), isPathCharacter) || rest.find("..") != std::string_view::npos)
    return std::nullopt;
  HostPort result{"", defaultPort};
  auto colon = authority.rfind(':');
  result.host = std::string(authority.substr(0, colon));
  if (colon != std::string_view::npos) {
    auto digits = authority.substr(colon + 1);
    auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), result.port);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || result.port == 0)
      return std::nullopt;
  }
  if (result.host.empty() || !std::all_of(result.host.begin(), result.host.end(), isHostCharacter)) return std::nullopt;
  return result;
}

std::optional<HostPort> proxyOfEnvironment() {
  for (auto name : {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    const char* value = getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    // The variable's value may have a password in it, so it is not repeated.
    auto bad = kit::UsageError{fmt::format("{} is no proxy that can be used; write http://HOST:PORT", name)};
    if (text.find("://") == std::string::npos) text = "http://" + text;
    auto at = text.rfind('@');
    if (at != std::string::npos) text = text.substr(0, text.find("://") + 3) + text.substr(at + 1);
    auto plain = hostOfUrl(text, "http", 1080);
    if (!plain) throw bad;
    return plain;
  }
  return std::nullopt;
}

Job parseJob(const std::vector<std::string>& words) {
  Job job;
  if (words.empty()) throw kit::UsageError{"a role is missing: connection or webhook"};
  if (words[0] == "webhook") {
    job.role = Role::Webhook;
    if (words.size() > 1) throw kit::UsageError{"webhook: takes no more words"};
    return job;
  }
  if (words[0] != "connection") throw kit::UsageError{fmt::format("there is no role \"{}\"", printable(words[0]))};
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--api") {
      job.api = valueOf(words, i);
    } else if (words[i] == "--ca") {
      job.caFile = valueOf(words, i);
      if (job.caFile[0] != '/') throw kit::UsageError{"--ca: not an absolute path"};
    } else {
      throw kit::UsageError{fmt::format("unexpected word: \"{}\"", printable(words[i]))};
    }
  }
  while (job.api.ends_with('/')) job.api.pop_back();
  auto host = hostOfUrl(job.api, "https", 443);
  if (!host) throw kit::UsageError{fmt::format("--api: not https://HOST[:PORT][/PATH]: \"{}\"", printable(job.api))};
  job.apiHost = *host;
  job.proxy = proxyOfEnvironment();
  for (auto name : {"no_proxy", "NO_PROXY"}) {
    const char* value = getenv(name);
    job.proxyHasExceptions |= value != nullptr && *value != '\0';
  }
  return job;
}

std::vector<std::string> jobWords(const Job& job) {
  if (job.role == Role::Webhook) return {"webhook"};
  std::vector<std::string> words = {"connection", "--api", job.api};
  if (!job.caFile.empty()) words.insert(words.end(), {"--ca", job.caFile});
  return words;
}

}  // namespace oc::github
