// The log of a process: lines on standard error, with the journal's priority prefix when it reads them.
// Everything passes the redactor, and control characters are made visible.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace oc {

enum class Level { Error = 3, Warning = 4, Info = 6, Debug = 7 };

// Names the process in each line. Call once, early. The level comes from OPEN_CONDUIT_LOG (error, warning,
// info, debug), else info.
void initLog(std::string_view program);
void logLine(Level level, std::string_view text);

template <typename... Args>
void logInfo(fmt::format_string<Args...> format, Args&&... args) {
  logLine(Level::Info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void logWarning(fmt::format_string<Args...> format, Args&&... args) {
  logLine(Level::Warning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void logError(fmt::format_string<Args...> format, Args&&... args) {
  logLine(Level::Error, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void logDebug(fmt::format_string<Args...> format, Args&&... args) {
  logLine(Level::Debug, fmt::format(format, std::forward<Args>(args)...));
}

// What logLine prints for `text`: without secrets (redact.h) and without control characters.
std::string redacted(std::string_view text);

}  // namespace oc
