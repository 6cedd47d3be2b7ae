// The one file that compiles valijson.
#include "argument_schema.h"

#include <kj/debug.h>

#include <algorithm>
#include <string_view>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "base/error.h"
#include "base/text.h"

namespace oc::run {

namespace {

constexpr size_t mostProblems = 4;
constexpr size_t mostDepth = 32;

// By what lies beneath each.
constexpr std::string_view valueKeywords[] = {"type",
                                              "required",
                                              "enum",
                                              "const",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "multipleOf",
                                              "minLength",
                                              "maxLength",
                                              "minItems",
                                              "maxItems",
                                              "uniqueItems",
                                              "minProperties",
                                              "maxProperties",
                                              "title",
                                              "description",
                                              "default",
                                              "examples",
                                              "$schema"};
constexpr std::string_view schemaKeywords[] = {"additionalProperties", "items", "not"};
constexpr std::string_view listKeywords[] = {"allOf", "anyOf", "oneOf"};

template <size_t SIZE>
bool isOneOf(const std::string& name, const std::string_view (&names)[SIZE]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void requireKnown(const Json& schema, size_t depth = 0) {
  if (schema.is_boolean()) return;
  if (!schema.is_object() || depth > mostDepth) fail("a schema is an object, and not nested deeper than 32");
  for (auto& [keyword, value] : schema.items()) {
    if (isOneOf(keyword, valueKeywords)) continue;
    if (isOneOf(keyword, schemaKeywords)) {
      requireKnown(value, depth + 1);
    } else if (isOneOf(keyword, listKeywords)) {
      for (auto& one : value) requireKnown(one, depth + 1);
    } else if (keyword == "properties" && value.is_object()) {
      for (auto& [name, one] : value.items()) requireKnown(one, depth + 1);
    } else {
      fail("an operation's schema has \"" + printable(keyword) + "\", which is not checked here");
    }
  }
}

// "<root>[body][0]" as the agent would write it: body[0].
std::string placeOf(const std::string& context) {
  std::string place;
  for (size_t at = context.find('['); at != std::string::npos; at = context.find('[', at + 1)) {
    auto name = context.substr(at + 1, context.find(']', at) - at - 1);
    bool index = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    place += index ? "[" + name + "]" : (place.empty() ? "" : ".") + name;
  }
  return place.empty() ? "the arguments" : place;
}

}  // namespace

struct ArgumentSchema::Compiled {
  valijson::Schema schema;
};

ArgumentSchema::ArgumentSchema(const Json& schema) : compiled(std::make_unique<Compiled>()) {
  requireKnown(schema);
  try {
    // What both drafts have in common is all that requireKnown lets through.
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled->schema);
  } catch (const std::exception& exception) {
    fail(std::string("an operation's schema cannot be read: ") + exception.what());
  }
}

ArgumentSchema::~ArgumentSchema() = default;
ArgumentSchema::ArgumentSchema(ArgumentSchema&&) noexcept = default;

std::optional<std::string> ArgumentSchema::problem(const Json& arguments) const {
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  if (validator.validate(compiled->schema, valijson::adapters::NlohmannJsonAdapter(arguments), &results)) {
    return std::nullopt;
  }
  std::string text;
  valijson::ValidationResults::Error error;
  for (size_t i = 0; i < mostProblems && results.popError(error); ++i) {
    std::string context;
    for (auto& part : error.context) context += part;
    text += (text.empty() ? "" : " ") + placeOf(context) + ": " + error.description;
  }
  return shortened(printable(text), 1024);
}

}  // namespace oc::run
