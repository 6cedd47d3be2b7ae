// The config, described once. What is read, checked, given to editors and written down for people comes from here.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats.h"

namespace oc::config {

struct Shape;
using ShapePtr = std::shared_ptr<const Shape>;

struct Field {
  std::string name;
  ShapePtr shape;
  std::string doc;  // a sentence or two, Markdown
  bool isRequired = false;
  Json byDefault = nullptr;  // null: none; durations in seconds
  // The shape depends on the value of the field `chosenBy` beside this one: `choices` by that value, and `shape` is
  // just an object then.
  std::string chosenBy = {};
  std::map<std::string, ShapePtr> choices = {};
};

struct Shape {
  enum class Kind { String, OneOf, Integer, Number, Boolean, Duration, List, Map, Object };

  Kind kind = Kind::String;
  Format format = Format::Text;          // String; Map: of the keys
  std::vector<std::string> values = {};  // OneOf
  double least = 0, most = 0;            // Integer, Number, Duration (seconds), List (items)
  ShapePtr item = {};                    // List, Map
  std::string title = {}, doc = {};      // Object: its heading in the reference
  std::vector<Field> fields = {};        // Object

  const Field* find(std::string_view name) const;
};

// The whole file.
const Shape& configShape();

// Where in the config fields of this name are, as "scopes[].bindings[].container.config.image"; at most `limit`.
std::vector<std::string> placesOfField(std::string_view name, size_t limit);

// For `config schema`: JSON Schema 2020-12.
Json configSchema();
// docs/reference.md, whole.
std::string configReference();
// The config that the page begins with.
std::string configExample();

}  // namespace oc::config
