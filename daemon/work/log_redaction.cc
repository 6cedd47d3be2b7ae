#include "log_redaction.h"

#include <algorithm>
#include <string_view>

#include "base/redact.h"

namespace oc::work {

namespace {

constexpr std::string_view keyBegin = "-----BEGIN ", keyEnd = "-----END ";
constexpr size_t longestKey = 16u << 10;
// A line that goes on for longer may be cut.
constexpr size_t longestRest = 64u << 10;

// Where a key begins that has no end within what a key may have.
size_t openKey(std::string_view text, size_t from) {
  for (auto at = text.find(keyBegin, from); at != text.npos; at = text.find(keyBegin, at + 1)) {
    if (text.substr(at, longestKey).find(keyEnd) == text.npos) return at;
  }
  return text.npos;
}

// How much of a piece is taken when there is more behind it.
size_t wholeLines(std::string_view text) {
  auto line = text.rfind('\n');
  auto end = line != text.npos && text.size() - line <= longestRest ? line + 1 : text.size();
  auto head = text.substr(0, end);
  auto key = head.rfind(keyBegin);
  bool open = key != head.npos && key > 0 && end - key < longestKey && head.find(keyEnd, key) == head.npos;
  if (!open) return end;
  auto before = head.rfind('\n', key - 1);
  return before == head.npos ? key : before + 1;
}

}  // namespace

LogBytes withoutSecrets(LogBytes piece, bool more) {
  auto read = piece.bytes.size();
  std::string_view text = piece.bytes;
  if (more && !text.empty()) text = text.substr(0, wholeLines(text));
  LogBytes shown{{}, piece.next - (read - text.size())};
  while (!text.empty()) {
    auto key = openKey(text, 0);
    auto end = key == text.npos ? text.size() : std::min(text.size(), key + longestKey);
    shown.bytes += oc::withoutSecrets(text.substr(0, end));
    text.remove_prefix(end);
  }
  return shown;
}

}  // namespace oc::work
