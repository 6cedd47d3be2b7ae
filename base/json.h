// JSON in one canonical form, for what is hashed and compared.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace oc {

using Json = nlohmann::json;

// Keys sorted by their bytes, no white space, UTF-8 as it is, integers without exponents. Throws on text
// that is not UTF-8 and on floating-point numbers, which have no single form.
std::string canonicalJson(const Json& value);

}  // namespace oc
