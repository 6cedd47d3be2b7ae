// Claude Code's stream-json as a person reads it.
#pragma once

#include <string>
#include <string_view>

#include "log_filter.h"
#include "look.h"

namespace oc::cli {

// Takes a log in pieces, wherever they were cut, and gives readable text: what the agent says, its tools with their
// input folded to a line, their results folded, and what the turn cost. Lines that are no events of Claude Code's are
// shown as they are, and nothing that it gives can drive a terminal. A line beyond 1 MiB is not looked into.
class Transcript {
 public:
  explicit Transcript(const Look& look) : look(look) {}

  std::string feed(std::string_view bytes);
  // What was held back because more might have come.
  std::string finish();

 private:
  std::string render(std::string_view line) const;
  std::string endLine();

  const Look& look;
  std::string line;     // the beginning of the one that is not whole yet
  uint64_t length = 0;  // of all of it
};

// A log of any kind. What is Claude Code's is told by the first line that begins with a brace; all else goes as it is,
// or on a terminal made harmless.
class LogView {
 public:
  LogView(const Look& look) : look(look), transcript(look) {}
  std::string feed(std::string_view bytes);
  std::string finish();

 private:
  enum class Kind { Unknown, Plain, Transcript };
  std::string plain(std::string_view bytes);
  std::string decide(bool last);

  const Look& look;
  Kind kind = Kind::Unknown;
  bool atLineStart = true;
  std::string held;  // a line that may decide
  LogFilter filter;
  Transcript transcript;
};

}  // namespace oc::cli
