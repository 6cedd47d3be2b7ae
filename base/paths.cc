#include "paths.h"

#include <kj/debug.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

namespace oc {

std::string normalizePath(std::string_view absolute) {
  KJ_REQUIRE(!absolute.empty() && absolute[0] == '/', "not an absolute path");
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < absolute.size();) {
    size_t end = absolute.find('/', at);
    if (end == std::string_view::npos) end = absolute.size();
    auto part = absolute.substr(at, end - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string result;
  for (auto part : parts) {
    result += '/';
    result += part;
  }
  return result.empty() ? "/" : result;
}

bool isAtOrUnder(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || path[directory.size()] == '/';
}

std::optional<std::string> expandPath(std::string_view entry, const std::string& home,
                                      const std::map<std::string, std::string>& placeholders) {
  if (entry.empty()) return std::nullopt;
  if (entry[0] == '/') return normalizePath(entry);
  std::string start;
  std::string_view rest;
  if (entry[0] == '~') {
    start = home;
    rest = entry.substr(1);
  } else if (entry[0] == '{') {
    auto close = entry.find('}');
    if (close == std::string_view::npos) return std::nullopt;
    auto known = placeholders.find(std::string(entry.substr(1, close - 1)));
    if (known == placeholders.end()) return std::nullopt;
    start = known->second;
    rest = entry.substr(close + 1);
  } else {
    return std::nullopt;
  }
  // "~user" and "{workspace}x" are other things than they look like.
  if (start.empty() || (!rest.empty() && rest[0] != '/')) return std::nullopt;
  return normalizePath(start + std::string(rest));
}

std::string parentOf(const std::string& path) { return path.substr(0, std::max<size_t>(path.rfind('/'), 1)); }

std::string resolvePath(const std::string& path) {
  std::string existing = path, rest;
  for (;;) {
    if (char* resolved = realpath(existing.c_str(), nullptr)) {
      std::string result = resolved;
      free(resolved);
      return rest.empty() ? result : normalizePath(result + rest);
    }
    int error = errno;
    if (error != ENOENT || existing == "/") KJ_FAIL_SYSCALL("realpath", error, path);
    auto slash = existing.rfind('/');
    rest = existing.substr(slash) + rest;
    existing = slash == 0 ? "/" : existing.substr(0, slash);
  }
}

}  // namespace oc
