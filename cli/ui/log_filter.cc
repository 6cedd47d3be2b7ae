#include "log_filter.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace oc::cli {

namespace {

// A colour sequence: ESC [ numbers and semicolons m. A longer one is not waited for.
constexpr size_t longestColour = 48;

enum class Match { No, Yes, Partly };

struct Colour {
  Match match;
  size_t length;
};

Colour matchColour(std::string_view text) {
  if (text.size() < 2) return {Match::Partly, 0};
  if (text[1] != '[') return {Match::No, 0};
  size_t end = std::min(text.size(), longestColour);
  for (size_t i = 2; i < end; ++i) {
    if (text[i] == 'm') return {Match::Yes, i + 1};
    if ((text[i] < '0' || text[i] > '9') && text[i] != ';' && text[i] != ':') return {Match::No, 0};
  }
  return {end == longestColour ? Match::No : Match::Partly, 0};
}

// Where an unfinished UTF-8 character begins at the end of `text`; its size when there is none.
size_t wholeCharacters(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    uint8_t byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

std::string LogFilter::feed(std::string_view bytes) {
  pending += bytes;
  return convert(false);
}

std::string LogFilter::finish() { return convert(true); }

std::string LogFilter::convert(bool last) {
  std::string text;
  size_t i = 0;
  for (; i < pending.size(); ++i) {
    std::string_view rest = std::string_view(pending).substr(i);
    if (rest[0] == '\r') {
      if (rest.size() == 1 && !last) break;
      if (rest.size() == 1 || rest[1] != '\n') text += '\n';
    } else if (rest[0] == '\x1b') {
      auto [match, length] = matchColour(rest);
      if (match == Match::Partly && !last) break;
      if (match == Match::Yes) {
        i += length - 1;
      } else {
        text += rest[0];
      }
    } else {
      text += rest[0];
    }
  }
  std::string held = pending.substr(i);
  if (held.empty() && !last) {
    size_t whole = wholeCharacters(text);
    held = text.substr(whole);
    text.resize(whole);
  }
  pending = std::move(held);
  return printable(text, true);
}

}  // namespace oc::cli
