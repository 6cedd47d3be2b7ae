#include "redact.h"

#include <sodium.h>

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "crypto.h"

namespace oc {

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
    while (end < text.size() && (isAlphanumeric(text[end]) || form.besides.find(text[end]) != std::string_view::npos)) ++end;
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

// ---- exact values

constexpr size_t window = 8, leastLine = 16, mostLines = 64;
// Of text that may be hashed for one answer, beyond the windows.
constexpr size_t hashingBudget = 1u << 20;

using Mac = std::array<unsigned char, 16>;

struct Fingerprint {
  size_t length;
  uint64_t last;  // of its last window
  Mac mac;
};

const unsigned char* asBytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

class Fingerprints {
 public:
  Fingerprints() : windowKey(SecretBytes::random(crypto_shorthash_KEYBYTES)), macKey(SecretBytes::random(32)) {}

  uint64_t add(std::string_view value) {
    auto first = windowAt(value);
    byFirst.emplace(first, Fingerprint{value.size(), windowAt(value.substr(value.size() - window)), macOf(value)});
    return first;
  }

  void remove(uint64_t first, size_t length, const Mac& mac) {
    auto [at, end] = byFirst.equal_range(first);
    for (; at != end; ++at) {
      if (at->second.length != length || at->second.mac != mac) continue;
      byFirst.erase(at);
      return;
    }
  }

  bool empty() const { return byFirst.empty(); }

  // The length of the longest secret that begins here; 0: none. `budget` pays for hashing.
  size_t secretAt(std::string_view text, size_t& budget) const {
    if (text.size() < window) return 0;
    size_t longest = 0;
    auto [at, end] = byFirst.equal_range(windowAt(text));
    for (; at != end; ++at) {
      auto& print = at->second;
      if (print.length > text.size() || print.length <= longest) continue;
      auto candidate = text.substr(0, print.length);
      if (windowAt(candidate.substr(print.length - window)) != print.last) continue;
      if (print.length > budget) return text.size();
      budget -= print.length;
      if (macOf(candidate) == print.mac) longest = print.length;
    }
    return longest;
  }

  Mac macOf(std::string_view value) const {
    Mac mac;
    crypto_generichash(mac.data(), mac.size(), asBytes(value), value.size(), asBytes(macKey.view()), macKey.size());
    return mac;
  }

 private:
  uint64_t windowAt(std::string_view text) const {
    uint64_t hash;
    crypto_shorthash(reinterpret_cast<unsigned char*>(&hash), asBytes(text), window, asBytes(windowKey.view()));
    return hash;
  }

  SecretBytes windowKey, macKey;
  std::unordered_multimap<uint64_t, Fingerprint> byFirst;
};

Fingerprints& fingerprints() {
  static Fingerprints all;
  return all;
}

size_t secretAt(std::string_view text, const Fingerprints* live, size_t& budget) {
  if (live != nullptr) {
    if (auto length = live->secretAt(text, budget)) return length;
  }
  // All forms begin so: most of a text is passed over by one comparison.
  if (text[0] != 'g' && text[0] != 's' && text[0] != '-') return 0;
  if (auto length = tokenAt(text)) return length;
  return privateKeyAt(text);
}

std::vector<std::string_view> linesOf(std::string_view value) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < value.size() && lines.size() < mostLines;) {
    auto end = std::min(value.find('\n', at), value.size());
    auto line = value.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() >= leastLine && line.size() < value.size()) lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

bool anyLive = false;

}  // namespace

std::string withoutSecrets(std::string_view text) {
  const Fingerprints* live = anyLive && !fingerprints().empty() ? &fingerprints() : nullptr;
  size_t budget = hashingBudget;
  std::string result;
  size_t kept = 0;
  for (size_t i = 0; i < text.size();) {
    auto length = secretAt(text.substr(i), live, budget);
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

struct LiveSecret::Registered {
  struct Entry {
    uint64_t first;
    size_t length;
    Mac mac;
  };
  std::vector<Entry> entries;

  void add(std::string_view value) {
    auto& all = fingerprints();
    entries.push_back({all.add(value), value.size(), all.macOf(value)});
  }
  ~Registered() {
    for (auto& entry : entries) fingerprints().remove(entry.first, entry.length, entry.mac);
  }
};

LiveSecret::LiveSecret(std::string_view value) {
  if (value.size() < window) return;
  anyLive = true;
  registered = std::make_unique<Registered>();
  registered->add(value);
  for (auto line : linesOf(value)) registered->add(line);
}

LiveSecret::~LiveSecret() = default;
LiveSecret::LiveSecret(LiveSecret&&) noexcept = default;
LiveSecret& LiveSecret::operator=(LiveSecret&&) noexcept = default;

}  // namespace oc
