// Checks an operation's arguments against its JSON Schema, as far as our schemas go: the shim has done so already, and
// may have been taken over.
#pragma once

#include <string>

#include "base/json.h"

namespace oc::github {

// Empty, or what is wrong, naming the field. Knows: type, properties, required, additionalProperties (false), items,
// minLength, maxLength, minimum, maximum, maxItems, minProperties.
std::string wrongWith(const Json& value, const Json& schema, const std::string& name = "the arguments");

}  // namespace oc::github
