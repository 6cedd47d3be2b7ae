#include "json.h"

#include <kj/debug.h>

namespace oc {

namespace {

void requireCanonical(const Json& value, int depth) {
  KJ_REQUIRE(depth < 64, "JSON is nested too deep");
  KJ_REQUIRE(!value.is_number_float(), "a floating-point number has no canonical form");
  KJ_REQUIRE(!value.is_binary() && !value.is_discarded(), "not a JSON value");
  if (value.is_structured()) {
    for (auto& child : value) requireCanonical(child, depth + 1);
  }
}

}  // namespace

std::string canonicalJson(const Json& value) {
  requireCanonical(value, 0);
  // nlohmann::json keeps objects in a std::map, so keys come sorted by their bytes.
  return value.dump(-1, ' ', false, Json::error_handler_t::strict);
}

}  // namespace oc
