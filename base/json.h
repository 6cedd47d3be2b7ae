// JSON in one canonical form, for what is hashed and compared.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

// Compiled once, in json.cc.
extern template class nlohmann::basic_json<>;

namespace oc {

using Json = nlohmann::json;

// At most 64 deep: a deeper text would cost its reader's stack. A text that is deeper, or no JSON, gives a value that
// is_discarded(), and of which at() throws a Json::exception.
constexpr size_t mostJsonDepth = 64;
Json parseJson(std::string_view text);

// Keys sorted by their bytes, no white space, UTF-8 as it is, integers without exponents. Throws on text
// that is not UTF-8 and on floating-point numbers, which have no single form.
std::string canonicalJson(const Json& value);

}  // namespace oc
