// The runs of one Work: which may begin when, and which failures are worth another try.
#pragma once

#include <cstdint>

#include "daemon/state/store.h"

namespace oc::work {

// Milliseconds since 1970. A first attempt may begin at once; a second 5 s after it was queued, and each further one
// after twice the time of the one before, at most 5 minutes.
int64_t earliestStart(const state::RunRow& run);

// Whether another try may end better. Not what was refused, stopped or saved badly, nor what came to its bounds of
// turns or cost.
bool mayMendByRetrying(const state::RunRow& ended);

}  // namespace oc::work
