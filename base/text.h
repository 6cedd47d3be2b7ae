// Text that came from elsewhere, made fit to be shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace oc {

// Replaces every control character (C0 but for tab, DEL, C1, and their UTF-8 forms), bidirectional override
// and broken UTF-8 sequence by something visible, so that it cannot drive a terminal. `keepNewlines` lets \n stay.
std::string printable(std::string_view text, bool keepNewlines = false);

// At most `limit` bytes, cut between characters, with "…" where something was cut.
std::string shortened(std::string_view text, size_t limit);

bool hasControlCharacters(std::string_view text);
bool isUtf8(std::string_view text);

// The closest of `candidates` to `word`, for "did you mean"; empty when none is close.
std::string closest(std::string_view word, const std::vector<std::string>& candidates);

// Quotes for a POSIX shell.
std::string shellQuote(std::string_view word);

}  // namespace oc
