#include "look.h"

#include "base/text.h"

namespace oc::cli {

namespace {

const char* code(Tint tint) {
  switch (tint) {
    case Tint::Plain: return "";
    case Tint::Dim: return "\x1b[2m";
    case Tint::Bold: return "\x1b[1m";
    case Tint::Good: return "\x1b[32m";
    case Tint::Bad: return "\x1b[1;31m";
    case Tint::Caution: return "\x1b[33m";
  }
  return "";
}

struct Character {
  uint32_t code;
  size_t bytes;
};

// Of text that printable() made, so that it is UTF-8.
Character first(std::string_view text) {
  auto byte = [&text](size_t i) { return static_cast<uint8_t>(text[i]); };
  size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (bytes == 1 || text.size() < bytes) return {byte(0), 1};
  uint32_t code = byte(0) & (0xFF >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) code = code << 6 | (byte(i) & 0x3F);
  return {code, bytes};
}

bool isBetween(uint32_t code, uint32_t from, uint32_t to) { return code >= from && code <= to; }

// The blocks of Unicode's EastAsianWidth W and F, coarsely: a wrong guess misaligns a line and nothing else.
size_t widthOf(uint32_t code) {
  if (isBetween(code, 0x300, 0x36F) || isBetween(code, 0x200B, 0x200D) || isBetween(code, 0xFE00, 0xFE0F)) return 0;
  bool wide = isBetween(code, 0x1100, 0x115F) || isBetween(code, 0x2E80, 0xA4CF) || isBetween(code, 0xAC00, 0xD7A3) ||
              isBetween(code, 0xF900, 0xFAFF) || isBetween(code, 0xFE30, 0xFE6F) || isBetween(code, 0xFF00, 0xFF60) ||
              isBetween(code, 0xFFE0, 0xFFE6) || isBetween(code, 0x1F300, 0x1FAFF) || isBetween(code, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

std::string tinted(const Look& look, Tint tint, std::string_view text) {
  if (!look.colour || tint == Tint::Plain || text.empty()) return std::string(text);
  return code(tint) + std::string(text) + "\x1b[0m";
}

size_t columnsOf(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    auto [code, bytes] = first(text);
    columns += widthOf(code);
    text.remove_prefix(bytes);
  }
  return columns;
}

std::string fitted(std::string_view text, size_t columns) {
  if (columnsOf(text) <= columns) return std::string(text);
  std::string result;
  size_t used = 0;
  while (!text.empty()) {
    auto [code, bytes] = first(text);
    if (used + widthOf(code) + 1 > columns) break;
    used += widthOf(code);
    result += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return columns == 0 ? "" : result + "…";
}

std::string padded(std::string text, size_t columns) {
  size_t have = columnsOf(text);
  if (have < columns) text.append(columns - have, ' ');
  return text;
}

std::string shortPath(const Look& look, const std::string& path) {
  if (look.home.size() > 1 && path == look.home) return "~";
  if (look.home.size() > 1 && path.starts_with(look.home + "/")) return "~" + path.substr(look.home.size());
  return path;
}

std::string line(std::string_view text) {
  auto result = printable(text);
  for (auto& c : result) {
    if (c == '\t') c = ' ';
  }
  return result;
}

std::string paragraph(std::string_view text, size_t indent) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string result;
  for (char c : printable(text, true)) {
    result += c;
    if (c == '\n') result.append(indent, ' ');
  }
  return result;
}

}  // namespace oc::cli
