#include <kj/common.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "crypto.h"
#include "json.h"
#include "redact.h"

namespace oc {

namespace {

constexpr size_t hashingStack = 4096;
constexpr size_t window = 8, leastLine = 16, mostLines = 64;
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
    // Hashing copies what it hashes, into its state and onto the stack.
    KJ_DEFER(sodium_stackzero(hashingStack));
    crypto_generichash_state state;
    KJ_DEFER(sodium_memzero(&state, sizeof(state)));
    Mac mac;
    crypto_generichash_init(&state, asBytes(macKey.view()), macKey.size(), mac.size());
    crypto_generichash_update(&state, asBytes(value), value.size());
    crypto_generichash_final(&state, mac.data(), mac.size());
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

// As a line of JSON has it, which is how agents print: quotes, backslashes and tabs are other bytes there.
std::string inJson(std::string_view value) {
  auto text = Json(std::string(value)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

size_t liveSecretAt(std::string_view text, size_t& budget) {
  return fingerprints().empty() ? 0 : fingerprints().secretAt(text, budget);
}

}  // namespace

struct LiveSecret::Registered {
  struct Entry {
    uint64_t first;
    size_t length;
    Mac mac;
  };
  std::vector<Entry> entries;

  void add(std::string_view value) {
    addOne(value);
    auto quoted = inJson(value);
    if (quoted != value) addOne(quoted);
  }
  void addOne(std::string_view value) {
    auto& all = fingerprints();
    entries.push_back({all.add(value), value.size(), all.macOf(value)});
  }
  ~Registered() {
    for (auto& entry : entries) fingerprints().remove(entry.first, entry.length, entry.mac);
  }
};

LiveSecret::LiveSecret(std::string_view value) {
  if (value.size() < window) return;
  detail::secretAt = liveSecretAt;
  registered = std::make_unique<Registered>();
  registered->add(value);
  for (auto line : linesOf(value)) registered->add(line);
}

LiveSecret::~LiveSecret() = default;
LiveSecret::LiveSecret(LiveSecret&&) noexcept = default;
LiveSecret& LiveSecret::operator=(LiveSecret&&) noexcept = default;

}  // namespace oc
