// How text is put before a person: colours, widths, and nothing that drives their terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace oc::cli {

struct Look {
  bool terminal = false;  // standard output is one
  bool colour = false;
  size_t width = 80;  // of the terminal
  std::string home;   // shown as ~
  int64_t now = 0;    // milliseconds since 1970
};

enum class Tint { Plain, Dim, Bold, Good, Bad, Caution };

std::string tinted(const Look& look, Tint tint, std::string_view text);

// How many columns a terminal gives to printable text: one a character, two for East Asian wide ones and emoji, none
// for combining marks.
size_t columnsOf(std::string_view text);

// At most `columns` wide, with "…" where something was cut.
std::string fitted(std::string_view text, size_t columns);

// The text with blanks up to `columns`.
std::string padded(std::string text, size_t columns);

// A path beneath the home begins with "~".
std::string shortPath(const Look& look, const std::string& path);

// One line, printable: what came from elsewhere goes through this before it is shown.
std::string line(std::string_view text);

// Several lines, printable, each but the first behind `indent` blanks.
std::string paragraph(std::string_view text, size_t indent);

}  // namespace oc::cli
