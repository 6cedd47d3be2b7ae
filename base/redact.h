// Takes secrets out of text that leaves the process: the one redactor, for log lines, refusals, notes and answers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace oc {

// `text` with "[redacted]" in the place of
// - what has the form of a token or key: GitHub's (gh?_…, github_pat_…), Anthropic's (sk-ant-…), PEM private keys;
// - the exact value of every secret that is live (below).
// The time it takes grows with the text and hardly with the number of secrets. A text that is made to take longer is
// cut: what follows is redacted whole.
std::string withoutSecrets(std::string_view text);

// While it lives, withoutSecrets knows the value: as a whole, and each of its lines that is long enough (16 bytes).
// Values of less than 8 bytes are not looked for: they would turn up in every text. Kept are fingerprints, keyed with
// this process's random bytes, not the value. Use it and withoutSecrets in one thread.
class LiveSecret {
 public:
  LiveSecret() = default;
  explicit LiveSecret(std::string_view value);
  ~LiveSecret();
  LiveSecret(LiveSecret&&) noexcept;
  LiveSecret& operator=(LiveSecret&&) noexcept;

 private:
  struct Registered;
  std::unique_ptr<Registered> registered;
};

namespace detail {

// The length of the live secret that `text` begins with; 0: none. `budget` pays for hashing. Null until there was one:
// programs without secrets need no cryptography for their logs.
extern size_t (*secretAt)(std::string_view text, size_t& budget);

}  // namespace detail

}  // namespace oc
