#include "json.h"

#include <kj/debug.h>

#include <algorithm>

template class nlohmann::basic_json<>;

namespace oc {

namespace {

void requireCanonical(const Json& value, size_t depth) {
  KJ_REQUIRE(depth < mostJsonDepth, "JSON is nested too deep");
  KJ_REQUIRE(!value.is_number_float(), "a floating-point number has no canonical form");
  KJ_REQUIRE(!value.is_binary() && !value.is_discarded(), "not a JSON value");
  if (value.is_structured()) {
    for (auto& child : value) requireCanonical(child, depth + 1);
  }
}

size_t depthOf(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '[' || text[i] == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!quoted && (text[i] == ']' || text[i] == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Json parseJson(std::string_view text) {
  if (depthOf(text) > mostJsonDepth) return Json::value_t::discarded;
  return Json::parse(text, nullptr, false);
}

std::string canonicalJson(const Json& value) {
  requireCanonical(value, 0);
  // nlohmann::json keeps objects in a std::map, so keys come sorted by their bytes.
  return value.dump(-1, ' ', false, Json::error_handler_t::strict);
}

}  // namespace oc
