// The description as JSON Schema 2020-12. It says less than `config check`: what a regular expression can't say, and
// how the parts go together.
#include "description.h"
#include "formats.h"

namespace oc::config {

namespace {

using Kind = Shape::Kind;

class SchemaWriter {
 public:
  Json write(const Shape& root) {
    Json schema = object(root);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    schema["title"] = "Open Conduit's config";
    schema["$defs"] = definitions;
    return schema;
  }

 private:
  Json shape(const Shape& shape) {
    switch (shape.kind) {
      case Kind::String: return string(shape.format);
      case Kind::OneOf: return {{"type", "string"}, {"enum", shape.values}};
      case Kind::Integer: return integer(shape);
      case Kind::Number: return {{"type", "number"}, {"minimum", shape.least}, {"maximum", shape.most}};
      case Kind::Boolean: return {{"type", "boolean"}};
      case Kind::Duration: return duration(shape);
      case Kind::List: {
        Json list = {{"type", "array"}, {"items", this->shape(*shape.item)}, {"maxItems", int64_t(shape.most)}};
        if (shape.least > 0) list["minItems"] = int64_t(shape.least);
        return list;
      }
      case Kind::Map:
        return {{"type", "object"},
                {"propertyNames", string(shape.format)},
                {"additionalProperties", this->shape(*shape.item)}};
      case Kind::Object: return reference(shape);
    }
    return Json::object();
  }

  static Json string(Format format) {
    Json result = {{"type", "string"}};
    auto pattern = formatPattern(format);
    if (!pattern.empty()) result["pattern"] = std::string(pattern);
    return result;
  }

  static Json integer(const Shape& shape) {
    if (shape.least == shape.most) return {{"const", int64_t(shape.least)}};
    return {{"type", "integer"}, {"minimum", int64_t(shape.least)}, {"maximum", int64_t(shape.most)}};
  }

  static Json duration(const Shape& shape) {
    Json number = {{"type", "integer"}, {"minimum", int64_t(shape.least)}, {"maximum", int64_t(shape.most)}};
    Json text = {{"type", "string"}, {"pattern", "^[0-9]{1,12}[smhd]$"}};
    return {{"anyOf", Json::array({number, text})}};
  }

  // Objects with a title are written once.
  Json reference(const Shape& shape) {
    if (shape.title.empty()) return {{"type", "object"}};
    std::string name = shape.title;
    for (auto& c : name) {
      if (c == ' ') c = '-';
    }
    if (!definitions.contains(name)) {
      definitions[name] = nullptr;  // its place
      definitions[name] = object(shape);
    }
    return {{"$ref", "#/$defs/" + name}};
  }

  Json object(const Shape& shape) {
    Json properties = Json::object(), required = Json::array(), conditions = Json::array();
    for (auto& field : shape.fields) {
      Json property = this->shape(*field.shape);
      property["description"] = field.doc;
      if (!field.byDefault.is_null()) property["default"] = field.byDefault;
      properties[field.name] = property;
      if (field.isRequired) required.push_back(field.name);
      for (auto& [value, choice] : field.choices) {
        conditions.push_back(
            {{"if",
              {{"properties", {{field.chosenBy, {{"const", value}}}}}, {"required", Json::array({field.chosenBy})}}},
             {"then", {{"properties", {{field.name, reference(*choice)}}}}}});
      }
    }
    Json result = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
    if (!shape.doc.empty()) result["description"] = shape.doc;
    if (!required.empty()) result["required"] = required;
    if (!conditions.empty()) result["allOf"] = conditions;
    return result;
  }

  Json definitions = Json::object();
};

}  // namespace

Json configSchema() { return SchemaWriter().write(configShape()); }

}  // namespace oc::config
