// The JSON Schema of one operation's arguments, and whether arguments keep to it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/json.h"

namespace oc::run {

class ArgumentSchema {
 public:
  // Throws, naming the keyword, for a schema that says more than is checked here: what would be passed over in silence
  // is refused. Checked are type, properties, required, additionalProperties, items, enum, const, minimum, maximum,
  // exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, minItems, maxItems, uniqueItems,
  // minProperties, maxProperties, allOf, anyOf, oneOf and not; title, description, default and examples say nothing.
  // There is no `pattern`: a regular expression on hostile text costs what its author did not think of.
  explicit ArgumentSchema(const Json& schema);
  ~ArgumentSchema();
  ArgumentSchema(ArgumentSchema&&) noexcept;

  // Nothing when they keep to it; else what is wrong with which of them, in a few sentences of at most 1 KiB.
  std::optional<std::string> problem(const Json& arguments) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled;
};

}  // namespace oc::run
