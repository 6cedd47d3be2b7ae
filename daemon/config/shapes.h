// Short ways to write shapes and fields, for the description.
#pragma once

#include <utility>

#include "description.h"

namespace oc::config::shapes {

inline ShapePtr make(Shape shape) { return std::make_shared<const Shape>(std::move(shape)); }

inline ShapePtr text(Format format) { return make({.kind = Shape::Kind::String, .format = format}); }
inline ShapePtr oneOf(std::vector<std::string> values) {
  return make({.kind = Shape::Kind::OneOf, .values = std::move(values)});
}
inline ShapePtr integer(double least, double most) {
  return make({.kind = Shape::Kind::Integer, .least = least, .most = most});
}
inline ShapePtr number(double least, double most) {
  return make({.kind = Shape::Kind::Number, .least = least, .most = most});
}
inline ShapePtr boolean() { return make({.kind = Shape::Kind::Boolean}); }
inline ShapePtr duration(double least, double most) {
  return make({.kind = Shape::Kind::Duration, .least = least, .most = most});
}
inline ShapePtr list(ShapePtr item, double least = 0, double most = 10'000) {
  return make({.kind = Shape::Kind::List, .least = least, .most = most, .item = std::move(item)});
}
inline ShapePtr map(Format keys, ShapePtr item) {
  return make({.kind = Shape::Kind::Map, .format = keys, .item = std::move(item)});
}
inline ShapePtr object(std::string title, std::string doc, std::vector<Field> fields) {
  return make(
      {.kind = Shape::Kind::Object, .title = std::move(title), .doc = std::move(doc), .fields = std::move(fields)});
}

inline Field required(std::string name, ShapePtr shape, std::string doc) {
  return {std::move(name), std::move(shape), std::move(doc), true};
}
inline Field optional(std::string name, ShapePtr shape, std::string doc, Json byDefault = nullptr) {
  return {std::move(name), std::move(shape), std::move(doc), false, std::move(byDefault)};
}
// A `config` whose fields depend on the field `by` beside it.
inline Field chosen(std::string name, std::string by, std::map<std::string, ShapePtr> choices, std::string doc) {
  return {std::move(name), object("", "", {}), std::move(doc), true, nullptr, std::move(by), std::move(choices)};
}

}  // namespace oc::config::shapes
