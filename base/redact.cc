#include "redact.h"

namespace oc {

namespace detail {

size_t (*secretAt)(std::string_view text, size_t& budget) = nullptr;

}  // namespace detail

namespace {

constexpr std::string_view replacement = "[redacted]";

// ---- forms

bool isAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

struct TokenForm {
  std::string_view prefix;   // '?': any small letter
  std::string_view besides;  // characters of the rest besides letters and digits
  size_t least;              // of the rest
};

constexpr TokenForm forms[] = {{"gh?_", "._", 36}, {"github_pat_", "_", 22}, {"sk-ant-", "-_", 16}};

bool beginsWith(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    bool fits = prefix[i] == '?' ? text[i] >= 'a' && text[i] <= 'z' : text[i] == prefix[i];
    if (!fits) return false;
  }
  return true;
}

// The token's length; 0: none begins here.
size_t tokenAt(std::string_view text) {
  for (auto& form : forms) {
    if (!beginsWith(text, form.prefix)) continue;
    size_t end = form.prefix.size();
    while (end < text.size() && (isAlphanumeric(text[end]) || form.besides.find(text[end]) != std::string_view::npos))
      ++end;
    if (end - form.prefix.size() >= form.least) return end;
  }
  return 0;
}

// A key whose end is missing goes on to the end of the text.
size_t privateKeyAt(std::string_view text) {
  constexpr std::string_view begin = "-----BEGIN ", end = "-----END ", kind = "PRIVATE KEY", dashes = "-----";
  constexpr size_t longestLabel = 64;
  if (!text.starts_with(begin)) return 0;
  auto label = text.substr(begin.size(), longestLabel);
  label = label.substr(0, label.find(dashes));
  if (label.find(kind) == std::string_view::npos) return 0;
  auto last = text.find(end, begin.size());
  if (last == std::string_view::npos) return text.size();
  auto close = text.find(dashes, last + end.size());
  return close == std::string_view::npos ? text.size() : close + dashes.size();
}

// Of text that may be hashed for one answer.
constexpr size_t hashingBudget = 1u << 20;

size_t secretAt(std::string_view text, size_t& budget) {
  if (detail::secretAt != nullptr) {
    if (auto length = detail::secretAt(text, budget)) return length;
  }
  // All forms begin so: most of a text is passed over by one comparison.
  if (text[0] != 'g' && text[0] != 's' && text[0] != '-') return 0;
  if (auto length = tokenAt(text)) return length;
  return privateKeyAt(text);
}

}  // namespace

std::string withoutSecrets(std::string_view text) {
  size_t budget = hashingBudget;
  std::string result;
  size_t kept = 0;
  for (size_t i = 0; i < text.size();) {
    auto length = secretAt(text.substr(i), budget);
    if (length == 0) {
      ++i;
      continue;
    }
    result.append(text.substr(kept, i - kept)).append(replacement);
    i += length;
    kept = i;
  }
  result.append(text.substr(kept));
  return result;
}

}  // namespace oc
