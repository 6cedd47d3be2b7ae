// Paths as text: what an operator writes in the config becomes one absolute, normal form.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace oc {

// "/a//b/./c/../d/" → "/a/b/d": by the text alone, no file is looked at. The input is absolute.
std::string normalizePath(std::string_view absolute);

// True when `path` is `directory` or lies beneath it; both in normal form.
bool isAtOrUnder(std::string_view path, std::string_view directory);

// The folder that the path lies in, by the text alone: "/" of "/bin", and of "/".
std::string parentOf(const std::string& path);

// What an entry like "~/x", "{workspace}/y" or "/z" means. Nothing when it is none of these forms, or names
// a placeholder that `placeholders` does not have ({"workspace": "/…", …}; without the braces).
std::optional<std::string> expandPath(std::string_view entry, const std::string& home,
                                      const std::map<std::string, std::string>& placeholders);

// The path with every link resolved; of what does not exist, the longest existing part is resolved and the
// rest appended. Throws on a loop.
std::string resolvePath(const std::string& path);

}  // namespace oc
