// Reads a text that is sound, in one pass. What is wrong with one that is not, document.cc finds out.
#pragma once

#include <optional>
#include <string_view>

#include "document.h"

namespace oc::config {

// The tree of a text that is JSON as RFC 8259 has it, within this part's bounds and without a key that is there twice.
// Nothing: the text is not, or has a number that is rarely written.
std::optional<Node> readSound(std::string_view text);

}  // namespace oc::config
