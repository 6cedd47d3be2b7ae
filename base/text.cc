#include "text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace oc {

namespace {

struct Decoded {
  uint32_t code;  // 0xFFFFFFFF: broken
  size_t length;  // bytes taken
};

constexpr uint32_t broken = 0xFFFFFFFF;

Decoded decode(std::string_view text) {
  auto byte = [&text](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {broken, 1};
  uint32_t code = first & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {broken, 1};
    code = code << 6 | (byte(i) & 0x3F);
  }
  static constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < least[length] || code > 0x10FFFF || surrogate) return {broken, 1};
  return {code, length};
}

bool isControl(uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

// Marks that reorder or hide what is around them.
bool isDeceptive(uint32_t code) {
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F ||
         code == 0x061C || code == 0x2028 || code == 0x2029 || code == 0xFEFF;
}

}  // namespace

std::string printable(std::string_view text, bool keepNewlines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    auto [code, length] = decode(text);
    if (code == broken) {
      result += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (code == '\t' || (code == '\n' && keepNewlines)) {
      result += static_cast<char>(code);
    } else if (isControl(code)) {
      result += fmt::format("\\x{:02x}", code);
    } else if (isDeceptive(code)) {
      result += fmt::format("\\u{:04x}", code);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string shortened(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  constexpr std::string_view mark = "…";
  size_t end = limit >= mark.size() ? limit - mark.size() : 0;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + (limit >= mark.size() ? std::string(mark) : "");
}

bool hasControlCharacters(std::string_view text) {
  while (!text.empty()) {
    auto [code, length] = decode(text);
    if (code != broken && isControl(code)) return true;
    text.remove_prefix(length);
  }
  return false;
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    auto [code, length] = decode(text);
    if (code == broken) return false;
    text.remove_prefix(length);
  }
  return true;
}

namespace {

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  if (word.size() > 128) return best;
  size_t bestDistance = std::max<size_t>(1, word.size() / 3) + 1;
  for (auto& candidate : candidates) {
    if (candidate.size() > 128) continue;
    size_t distance = editDistance(word, candidate);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string shellQuote(std::string_view word) {
  std::string result = "'";
  for (char c : word) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

}  // namespace oc
