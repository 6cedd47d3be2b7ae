// Times and spans, for people and for scripts.
#pragma once

#include <cstdint>
#include <string>

namespace oc::cli {

int64_t nowMilliseconds();

// "0.4 s", "42 s", "3 min 12 s", "2 h 5 min", "3 d 4 h".
std::string span(int64_t milliseconds);

// "2025-11-29T15:08:00.123Z".
std::string timestamp(int64_t milliseconds);

}  // namespace oc::cli
