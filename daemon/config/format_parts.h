// The longer ones among the forms of formats.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats.h"

namespace oc::config {

struct PathForms {
  bool home = false;                           // "~/…" is one
  std::vector<std::string> placeholders = {};  // without their braces
};

std::optional<FormatProblem> checkPath(std::string_view text, const PathForms& forms);
std::optional<FormatProblem> checkNetwork(std::string_view text);
std::optional<FormatProblem> checkImage(std::string_view text);
std::optional<FormatProblem> checkBranch(std::string_view text);

// For messages: in quotes, with nothing that could drive a terminal, shortened.
std::string inQuotes(std::string_view text);

}  // namespace oc::config
