// Holds a tree against the description: types, unknown and missing fields, forms of strings, ranges.
#pragma once

#include <optional>

#include "description.h"
#include "report.h"

namespace oc::config {

void checkShape(const Spot& spot, const Shape& shape, Report& report);

// The same tree as plain JSON with every default filled in, durations in seconds. For a tree without errors only.
Json fillDefaults(const Node& node, const Shape& shape);

// "90s", "30m", "2h", "1d", or seconds as a number. Nothing when it is none of these.
std::optional<double> parseDuration(const Node& node);

}  // namespace oc::config
