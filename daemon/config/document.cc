#include "document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "quick_reader.h"
#include "syntax_error.h"
#include "text_cursor.h"

namespace oc::config {

namespace {

// Builds the tree from the parser's events.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, Document& document) : cursor(text), document(document) {}

  // What nlohmann::json::sax_parse calls.
  bool null() { return scalar(Node::Kind::Null); }
  bool boolean(bool value) {
    return scalar(Node::Kind::Boolean, [value](Node& node) { node.boolean = value; });
  }
  bool number_integer(int64_t value) {
    return scalar(Node::Kind::Integer, [value](Node& node) { node.integer = value; });
  }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return number_integer(static_cast<int64_t>(value));
    return number_float(static_cast<double>(value), "");
  }
  bool number_float(double value, const std::string&) {
    return scalar(Node::Kind::Number, [value](Node& node) { node.number = value; });
  }
  bool string(std::string& value) {
    return scalar(Node::Kind::String, [&value](Node& node) { node.text = std::move(value); });
  }
  bool binary(std::vector<uint8_t>&) { return false; }  // not in JSON's text form

  bool start_object(size_t) { return open(Node::Kind::Object); }
  bool start_array(size_t) { return open(Node::Kind::Array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name);
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) { return explainError(); }
  // The parser takes a NUL for the end of the text.
  bool checkEnd();

 private:
  bool explainError();

  struct Level {
    Node node;
    std::string path;                              // of the node
    Member pending;                                // object: the key whose value comes next
    std::unordered_map<std::string, size_t> seen;  // object: keys and their lines
    bool pendingIsDuplicate = false;
    bool afterKey = false;
  };

  bool scalar(Node::Kind kind) {
    return scalar(kind, [](Node&) {});
  }
  template <typename Fill>
  bool scalar(Node::Kind kind, Fill fill) {
    Node node;
    node.kind = kind;
    node.at = cursor.nextToken();
    if (!countValue(node.at)) return false;
    if (kind != Node::Kind::String) lastScalar = cursor;
    cursor.skipToken();
    fill(node);
    place(std::move(node));
    return true;
  }

  bool open(Node::Kind kind);
  bool close();
  void place(Node node);
  bool countValue(Position at);
  std::string pathOfNext() const;
  bool fail(Position at, std::string message, std::string fix);

  TextCursor cursor;
  TextCursor lastScalar{""};
  Document& document;
  std::vector<Level> levels;
  size_t values = 0;
};

bool TreeBuilder::fail(Position at, std::string message, std::string fix) {
  document.problems.push_back({at, levels.empty() ? "" : levels.back().path, std::move(message), std::move(fix)});
  return false;
}

bool TreeBuilder::countValue(Position at) {
  if (++values <= documentValueLimit) return true;
  return fail(at, fmt::format("the file has more than {} values", documentValueLimit), "split it, or shorten it");
}

std::string TreeBuilder::pathOfNext() const {
  if (levels.empty()) return "";
  auto& parent = levels.back();
  if (parent.node.kind == Node::Kind::Array) return itemPath(parent.path, parent.node.items.size());
  return memberPath(parent.path, parent.pending.key);
}

bool TreeBuilder::open(Node::Kind kind) {
  Level level;
  level.node.kind = kind;
  level.node.at = cursor.nextToken();
  if (levels.size() >= documentDepthLimit) {
    return fail(level.node.at, fmt::format("values are nested more than {} levels deep", documentDepthLimit),
                "no field of the config is nested so deep; look for a bracket too many");
  }
  if (!countValue(level.node.at)) return false;
  cursor.skipToken();
  level.path = pathOfNext();
  levels.push_back(std::move(level));
  return true;
}

bool TreeBuilder::close() {
  cursor.nextToken();
  cursor.skipToken();
  Node node = std::move(levels.back().node);
  levels.pop_back();
  place(std::move(node));
  return true;
}

bool TreeBuilder::key(std::string& name) {
  auto& level = levels.back();
  level.pending.at = cursor.nextToken();
  cursor.skipToken();
  level.afterKey = true;
  if (!countValue(level.pending.at)) return false;
  auto [known, isNew] = level.seen.emplace(name, level.pending.at.line);
  level.pendingIsDuplicate = !isNew;
  level.pending.key = std::move(name);
  if (!isNew) {
    document.problems.push_back(
        {level.pending.at, memberPath(level.path, level.pending.key),
         fmt::format("this field is in the object twice; the first one is in line {}", known->second),
         "keep one of the two"});
  }
  return true;
}

void TreeBuilder::place(Node node) {
  if (levels.empty()) {
    document.root = std::move(node);
    document.complete = true;
    return;
  }
  auto& parent = levels.back();
  if (parent.node.kind == Node::Kind::Array) {
    parent.node.items.push_back(std::move(node));
    return;
  }
  parent.afterKey = false;
  if (parent.pendingIsDuplicate) return;
  parent.pending.value = std::move(node);
  parent.node.members.push_back(std::move(parent.pending));
  parent.pending = {};
}

bool TreeBuilder::checkEnd() {
  cursor.skipSpace();
  return cursor.atEnd() || explainError();
}

bool TreeBuilder::explainError() {
  SyntaxContext context;
  context.lastScalar = lastScalar;
  if (!levels.empty()) {
    auto& level = levels.back();
    bool object = level.node.kind == Node::Kind::Object;
    context.openedAt = level.node.at;
    context.inside = object ? SyntaxContext::Inside::Object : SyntaxContext::Inside::Array;
    context.afterKey = level.afterKey;
    context.first = object ? level.seen.empty() : level.node.items.empty();
  } else {
    context.afterEnd = document.complete;
  }
  document.complete = false;
  auto error = explainSyntaxError(cursor, context);
  return fail(error.at, std::move(error.message), std::move(error.fix));
}

}  // namespace

const Member* Node::find(std::string_view key) const {
  for (auto& member : members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

Member* Node::find(std::string_view key) { return const_cast<Member*>(std::as_const(*this).find(key)); }

Json Node::toJson() const {
  switch (kind) {
    case Kind::Null: return nullptr;
    case Kind::Boolean: return boolean;
    case Kind::Integer: return integer;
    case Kind::Number: return number;
    case Kind::String: return text;
    case Kind::Array: {
      Json result = Json::array();
      for (auto& item : items) result.push_back(item.toJson());
      return result;
    }
    case Kind::Object: {
      Json result = Json::object();
      for (auto& member : members) result[member.key] = member.value.toJson();
      return result;
    }
  }
  return nullptr;
}

std::string_view kindName(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::Null: return "null";
    case Node::Kind::Boolean: return "true or false";
    case Node::Kind::Integer: return "a number";
    case Node::Kind::Number: return "a number with decimals";
    case Node::Kind::String: return "a string";
    case Node::Kind::Array: return "an array";
    case Node::Kind::Object: return "an object";
  }
  return "a value";
}

Document readDocument(std::string_view text) {
  Document document;
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.size() > documentSizeLimit) {
    document.problems.push_back({{},
                                 "",
                                 fmt::format("the file is larger than {} MiB", documentSizeLimit >> 20),
                                 "a config is far smaller; is this the right file?"});
    return document;
  }
  if (text.starts_with(mark)) {
    document.problems.push_back(
        {{1, 1}, "", "the file begins with a byte order mark, which is skipped", "save it as UTF-8 without BOM", true});
    text.remove_prefix(mark.size());
  }
  if (auto root = readSound(text)) {
    document.root = std::move(*root);
    document.complete = true;
    return document;
  }
  TreeBuilder builder(text, document);
  bool parsed = Json::sax_parse(text.begin(), text.end(), &builder) && builder.checkEnd();
  if (!parsed) document.complete = false;
  return document;
}

std::string memberPath(const std::string& parent, std::string_view name) {
  bool plain = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '$';
  });
  std::string shown = plain ? std::string(name) : Json(shortened(printable(name), 64)).dump();
  if (!plain) return parent + "[" + shown + "]";
  return parent.empty() ? shown : parent + "." + shown;
}

namespace {

void linkBelow(Node& node) {
  for (auto& item : node.items) {
    item.parent = &node;
    linkBelow(item);
  }
  for (auto& member : node.members) {
    member.value.parent = &node;
    linkBelow(member.value);
  }
}

}  // namespace

void Document::link() { linkBelow(root); }

std::string pathOf(const Node& node) {
  if (node.parent == nullptr) return "";
  auto& parent = *node.parent;
  if (parent.kind == Node::Kind::Array)
    return itemPath(pathOf(parent), static_cast<size_t>(&node - parent.items.data()));
  auto member =
      std::find_if(parent.members.begin(), parent.members.end(), [&node](auto& one) { return &one.value == &node; });
  return memberPath(pathOf(parent), member->key);
}

std::string itemPath(const std::string& parent, size_t index) { return fmt::format("{}[{}]", parent, index); }

}  // namespace oc::config
