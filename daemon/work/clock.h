#pragma once

#include <chrono>
#include <cstdint>

namespace oc::work {

// Milliseconds since 1970, as the database has times.
inline int64_t nowMs() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace oc::work
