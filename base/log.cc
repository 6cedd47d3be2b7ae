#include "log.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "text.h"

namespace oc {

namespace {

std::string programName = "open-conduit";
Level maximum = Level::Info;
bool journal = false;

bool isTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// gh[a-z]_ and at least 36 more: every form of GitHub's tokens that is known.
std::string withoutTokens(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    bool begins = text.size() - i >= 4 && text[i] == 'g' && text[i + 1] == 'h' && text[i + 2] >= 'a' &&
                  text[i + 2] <= 'z' && text[i + 3] == '_';
    if (begins) {
      size_t end = i + 4;
      while (end < text.size() && isTokenCharacter(text[end])) ++end;
      if (end - i >= 40) {
        result += "[redacted]";
        i = end;
        continue;
      }
    }
    result += text[i++];
  }
  return result;
}

}  // namespace

std::string redacted(std::string_view text) { return printable(withoutTokens(text)); }

void initLog(std::string_view program) {
  programName = program;
  journal = getenv("JOURNAL_STREAM") != nullptr;
  if (const char* wanted = getenv("OPEN_CONDUIT_LOG")) {
    std::string_view word = wanted;
    if (word == "error") maximum = Level::Error;
    if (word == "warning") maximum = Level::Warning;
    if (word == "info") maximum = Level::Info;
    if (word == "debug") maximum = Level::Debug;
  }
}

void logLine(Level level, std::string_view text) {
  if (level > maximum) return;
  std::string line;
  if (journal) line += fmt::format("<{}>", static_cast<int>(level));
  line += programName;
  line += ": ";
  if (!journal && level == Level::Error) line += "error: ";
  if (!journal && level == Level::Warning) line += "warning: ";
  line += redacted(text);
  line += '\n';
  // One write, so that lines of several processes do not mix. Where the log cannot be written there is
  // nobody to tell.
  ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
  (void)ignored;
}

}  // namespace oc
