#include "log.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "redact.h"
#include "text.h"

namespace oc {

namespace {

std::string programName = "open-conduit";
Level maximum = Level::Info;
bool journal = false;

}  // namespace

std::string redacted(std::string_view text) { return printable(withoutSecrets(text)); }

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
