// A JSON text as a tree that remembers where each thing stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace oc::config {

// From 1, columns in characters. 0: nowhere in the text.
struct Position {
  size_t line = 0, column = 0;
};

struct Member;

// Nodes refer to the one that they are in, by its address: see Document::link.
struct Node {
  enum class Kind { Null, Boolean, Integer, Number, String, Array, Object };

  Kind kind = Kind::Null;
  Position at;
  bool boolean = false;
  int64_t integer = 0;  // beyond its range, a number is a Number
  double number = 0;
  std::string text;
  std::vector<Node> items;
  std::vector<Member> members;  // in the text's order, each key once (the first)
  const Node* parent = nullptr;

  // Null when there is no such member, or this is no object.
  const Member* find(std::string_view key) const;
  Member* find(std::string_view key);
  // The value as plain JSON.
  Json toJson() const;
};

struct Member {
  std::string key;
  Position at;  // of the key
  Node value;
};

// "a string", "an object", … for messages.
std::string_view kindName(Node::Kind kind);

struct DocumentProblem {
  Position at;
  std::string field;  // where in the tree
  std::string message, fix;
  bool warning = false;
};

struct Document {
  // Once the document has come to where it stays: pathOf needs it.
  void link();

  Node root;
  bool complete = false;                  // false: the text is no JSON, and the last problem says why
  std::vector<DocumentProblem> problems;  // duplicate keys, a byte order mark, at most one syntax error
};

// Bounds of what is read: bytes of text, levels of nesting, values and keys.
constexpr size_t documentSizeLimit = 4u << 20, documentDepthLimit = 64, documentValueLimit = 200'000;

// Reads JSON as RFC 8259 has it, and nothing else: no comments, no trailing commas, no NaN, only UTF-8.
Document readDocument(std::string_view text);

// "scopes[0].bindings" and "name" → "scopes[0].bindings.name"; a name that is no plain word is quoted.
std::string memberPath(const std::string& parent, std::string_view name);
std::string itemPath(const std::string& parent, size_t index);
// Where a node of a linked document is: "scopes[0].bindings[3].name". Made only when something is said about it.
std::string pathOf(const Node& node);

}  // namespace oc::config
