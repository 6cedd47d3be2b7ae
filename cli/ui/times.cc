#include "times.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>

namespace oc::cli {

int64_t nowMilliseconds() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string span(int64_t milliseconds) {
  milliseconds = std::max<int64_t>(milliseconds, 0);
  int64_t seconds = milliseconds / 1000;
  if (seconds < 10) return fmt::format("{}.{} s", seconds, milliseconds % 1000 / 100);
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
}

std::string timestamp(int64_t milliseconds) {
  time_t seconds = milliseconds / 1000;
  struct tm parts = {};
  if (gmtime_r(&seconds, &parts) == nullptr) return fmt::format("{}", milliseconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, milliseconds % 1000);
}

}  // namespace oc::cli
