// What a run reached and what was refused, as its network log has it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "look.h"

namespace oc::cli {

// Each record is an object of the run's network log; what is missing in one is shown as nothing.
std::string networkView(const Look& look, const std::vector<Json>& records);

}  // namespace oc::cli
