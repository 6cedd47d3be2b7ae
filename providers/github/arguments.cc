#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "fields.h"

namespace oc::github {

namespace {

size_t charactersOf(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

bool isOfType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  return false;
}

std::string wrongObject(const Json& value, const Json& schema, const std::string& name) {
  auto& properties = fieldOf(schema, "properties");
  for (auto& required : schema.value("required", Json::array())) {
    if (!value.contains(required.get<std::string>()))
      return fmt::format("{} lacks \"{}\"", name, required.get<std::string>());
  }
  for (auto& [key, field] : value.items()) {
    auto& expected = fieldOf(properties, key.c_str());
    if (expected.is_null())
      return fmt::format("{} has \"{}\", which it cannot have", name, shortened(printable(key), 64));
    auto wrong = wrongWith(field, expected, "\"" + key + "\"");
    if (!wrong.empty()) return wrong;
  }
  if (value.size() < schema.value("minProperties", size_t{0})) return name + " has too few fields";
  return "";
}

}  // namespace

std::string wrongWith(const Json& value, const Json& schema, const std::string& name) {
  auto type = schema.value("type", std::string());
  if (!isOfType(value, type)) return fmt::format("{} is no {}", name, type);
  if (type == "object") return wrongObject(value, schema, name);
  if (type == "string") {
    auto length = charactersOf(value.get_ref<const std::string&>());
    if (length < schema.value("minLength", size_t{0})) return name + " is empty";
    if (length > schema.value("maxLength", size_t{65536}))
      return fmt::format("{} is longer than {} characters", name, schema.value("maxLength", size_t{65536}));
  }
  if (type == "integer") {
    if (!value.is_number_unsigned() || value.get<uint64_t>() < schema.value("minimum", uint64_t{0}))
      return name + " is too small";
    if (value.get<uint64_t>() > schema.value("maximum", uint64_t{1} << 53)) return name + " is too large";
  }
  if (type == "array") {
    if (value.size() > schema.value("maxItems", size_t{100})) return name + " has too many items";
    for (auto& item : value) {
      auto wrong = wrongWith(item, schema.at("items"), "an item of " + name);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

}  // namespace oc::github
