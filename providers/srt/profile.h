#pragma once

#include "parts.h"
#include "providers/kit/profile.h"

namespace oc::srt {

// What srt's parent may do: what srt and bubblewrap need, and the operator's own view of the machine without what the
// daemon hides.
kit::Profile profileOf(const Job& job);

}  // namespace oc::srt
