#include "check_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "format_parts.h"

namespace oc::config {

namespace {

using Kind = Shape::Kind;

std::string wantedType(const Shape& shape) {
  switch (shape.kind) {
    case Kind::String: return "a string";
    case Kind::OneOf: return "a string";
    case Kind::Integer: return "a whole number";
    case Kind::Number: return "a number";
    case Kind::Boolean: return "true or false";
    case Kind::Duration: return "a duration";
    case Kind::List: return "an array";
    case Kind::Map:
    case Kind::Object: return "an object";
  }
  return "something else";
}

std::string typeFix(const Shape& shape, const Node& node) {
  bool single = node.kind == Node::Kind::String || node.kind == Node::Kind::Object;
  if (shape.kind == Kind::List && single) return "put it in brackets: […]";
  if (shape.kind == Kind::Duration) return "write \"90s\", \"30m\", \"2h\", \"1d\", or seconds as a number";
  bool asText = node.kind == Node::Kind::Integer || node.kind == Node::Kind::Number || node.kind == Node::Kind::Boolean;
  if (shape.kind == Kind::String && asText) return "put it in double quotes";
  bool wantsBare = shape.kind == Kind::Integer || shape.kind == Kind::Number || shape.kind == Kind::Boolean;
  if (wantsBare && node.kind == Node::Kind::String) return "write it without quotes";
  if (node.kind == Node::Kind::Null) return "leave the field out if it isn't meant";
  return "";
}

bool hasType(const Shape& shape, const Node& node) {
  using K = Node::Kind;
  bool wholeNumber = node.kind == K::Integer;
  switch (shape.kind) {
    case Kind::String:
    case Kind::OneOf: return node.kind == K::String;
    case Kind::Integer: return wholeNumber || (node.kind == K::Number && std::abs(node.number) > 9e18);
    case Kind::Number: return wholeNumber || node.kind == K::Number;
    case Kind::Boolean: return node.kind == K::Boolean;
    case Kind::Duration: return wholeNumber || node.kind == K::Number || node.kind == K::String;
    case Kind::List: return node.kind == K::Array;
    case Kind::Map:
    case Kind::Object: return node.kind == K::Object;
  }
  return false;
}

double numberOf(const Node& node) {
  return node.kind == Node::Kind::Integer ? static_cast<double>(node.integer) : node.number;
}

class Checker {
 public:
  explicit Checker(Report& report) : report(report) {}

  void check(const Spot& spot, const Shape& shape) {
    if (!hasType(shape, *spot.node)) {
      report.error(spot, fmt::format("must be {}, not {}", wantedType(shape), kindName(spot.node->kind)),
                   typeFix(shape, *spot.node));
      return;
    }
    switch (shape.kind) {
      case Kind::String: return checkString(spot, shape);
      case Kind::OneOf: return checkOneOf(spot, shape);
      case Kind::Integer:
      case Kind::Number: return checkRange(spot, shape, numberOf(*spot.node), "");
      case Kind::Duration: return checkDuration(spot, shape);
      case Kind::Boolean: return;
      case Kind::List: return checkList(spot, shape);
      case Kind::Map: return checkMap(spot, shape);
      case Kind::Object: return checkObject(spot, shape);
    }
  }

 private:
  void checkString(const Spot& spot, const Shape& shape) {
    if (auto found = checkFormat(shape.format, spot.node->text)) report.error(spot, found->message, found->fix);
  }

  void checkOneOf(const Spot& spot, const Shape& shape) {
    auto& text = spot.node->text;
    if (std::find(shape.values.begin(), shape.values.end(), text) != shape.values.end()) return;
    auto known = fmt::format("\"{}\"", fmt::join(shape.values, "\", \""));
    report.error(spot, fmt::format("{} is not known here", inQuotes(text)),
                 didYouMean(text, shape.values, shape.values.size() == 1 ? "write " + known : "write one of " + known));
  }

  void checkRange(const Spot& spot, const Shape& shape, double value, std::string_view unit) {
    if (value >= shape.least && value <= shape.most) return;
    if (shape.least == shape.most) {
      report.error(spot, fmt::format("must be {}", shape.least), fmt::format("write {}", shape.least));
      return;
    }
    report.error(spot, fmt::format("{}{} is out of range", value, unit),
                 fmt::format("from {:.15g} to {:.15g}{}", shape.least, shape.most, unit));
  }

  void checkDuration(const Spot& spot, const Shape& shape) {
    auto seconds = parseDuration(*spot.node);
    if (!seconds) {
      report.error(spot, fmt::format("{} is no duration", inQuotes(spot.node->text)), typeFix(shape, *spot.node));
      return;
    }
    if (*seconds != std::floor(*seconds)) {
      report.error(spot, "seconds are whole numbers", "round it");
      return;
    }
    checkRange(spot, shape, *seconds, " s");
  }

  void checkList(const Spot& spot, const Shape& shape) {
    size_t count = spot.node->items.size();
    if (static_cast<double>(count) < shape.least) {
      report.error(spot, "is empty", fmt::format("at least {} is needed", shape.least));
    }
    if (static_cast<double>(count) > shape.most) {
      report.error(spot, fmt::format("has {} entries, more than {}", count, shape.most), "shorten it");
      return;
    }
    for (auto& item : spot.items()) check(item, *shape.item);
  }

  void checkMap(const Spot& spot, const Shape& shape) {
    for (auto& member : spot.members()) {
      if (auto found = checkFormat(shape.format, member.key())) report.errorOfKey(member, found->message, found->fix);
      check(member, *shape.item);
    }
  }

  void checkObject(const Spot& spot, const Shape& shape) {
    for (auto& member : spot.members()) {
      auto field = shape.find(member.key());
      if (field == nullptr) {
        report.errorOfKey(member, "there is no such field here", fixForUnknown(member, shape));
        continue;
      }
      auto chosen = shapeOf(*field, spot);
      if (chosen != nullptr) check(member, *chosen);
    }
    for (auto& field : shape.fields) {
      if (field.isRequired && spot.node->find(field.name) == nullptr) reportMissing(spot, field);
    }
  }

  void reportMissing(const Spot& spot, const Field& field) {
    std::string fix = fmt::format("add \"{}\"", field.name);
    if (field.shape->kind == Kind::OneOf) fix += fmt::format(": \"{}\"", fmt::join(field.shape->values, "\" or \""));
    auto at = spot.node->at;
    report.add({Diagnostic::Severity::Error, at.line, at.column, memberPath(spot.path(), field.name), "",
                "this field is required", std::move(fix)});
  }

  std::string fixForUnknown(const Spot& member, const Shape& shape) {
    std::vector<std::string> names;
    for (auto& field : shape.fields) names.push_back(field.name);
    auto close = closest(member.key(), names);
    if (!close.empty()) return fmt::format("did you mean \"{}\"?", close);
    auto elsewhere = placesOfField(member.key(), 2);
    if (!elsewhere.empty()) return fmt::format("a field of this name belongs in {}", fmt::join(elsewhere, " or "));
    if (names.empty()) return "nothing can be set here; delete it";
    return fmt::format("delete it; the fields here are {}", fmt::join(names, ", "));
  }

  // Null: can't be known, since what it depends on is wrong or missing, which is reported there.
  const Shape* shapeOf(const Field& field, const Spot& parent) {
    if (field.choices.empty()) return field.shape.get();
    auto choice = field.choices.find(parent.text(field.chosenBy));
    return choice == field.choices.end() ? nullptr : choice->second.get();
  }

  Report& report;
};

const Shape& chosenShape(const Field& field, const Node& parent) {
  if (field.choices.empty()) return *field.shape;
  return *field.choices.at(parent.find(field.chosenBy)->value.text);
}

}  // namespace

std::optional<double> parseDuration(const Node& node) {
  if (node.kind == Node::Kind::Integer || node.kind == Node::Kind::Number) return numberOf(node);
  if (node.kind != Node::Kind::String) return std::nullopt;
  auto& text = node.text;
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0 || digits > 12 || digits + 1 != text.size()) return std::nullopt;
  double value = std::stod(text.substr(0, digits));
  switch (text.back()) {
    case 's': return value;
    case 'm': return value * 60;
    case 'h': return value * 3600;
    case 'd': return value * 86400;
    default: return std::nullopt;
  }
}

void checkShape(const Spot& spot, const Shape& shape, Report& report) { Checker(report).check(spot, shape); }

Json fillDefaults(const Node& node, const Shape& shape) {
  switch (shape.kind) {
    case Kind::Duration: return static_cast<int64_t>(*parseDuration(node));
    case Kind::List: {
      Json result = Json::array();
      for (auto& item : node.items) result.push_back(fillDefaults(item, *shape.item));
      return result;
    }
    case Kind::Map: {
      Json result = Json::object();
      for (auto& member : node.members) result[member.key] = fillDefaults(member.value, *shape.item);
      return result;
    }
    case Kind::Object: {
      Json result = Json::object();
      for (auto& field : shape.fields) {
        auto member = node.find(field.name);
        auto& fieldShape = chosenShape(field, node);
        if (member != nullptr) {
          result[field.name] = fillDefaults(member->value, fieldShape);
        } else if (field.byDefault.is_object() && fieldShape.kind == Kind::Object) {
          Node empty;
          empty.kind = Node::Kind::Object;
          result[field.name] = fillDefaults(empty, fieldShape);
        } else if (!field.byDefault.is_null()) {
          result[field.name] = field.byDefault;
        }
      }
      return result;
    }
    default: return node.toJson();
  }
}

}  // namespace oc::config
