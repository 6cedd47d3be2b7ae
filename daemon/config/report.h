// Collects what is found wrong, and walks the tree with the names of the places.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "document.h"
#include "load.h"

namespace oc::config {

// A value and its place, in a linked document.
struct Spot {
  const Node* node = nullptr;      // never null
  const Member* member = nullptr;  // when it is a field's value

  std::string path() const { return pathOf(*node); }
  // Its last name, and where that stands. Of a field's value only.
  const std::string& key() const { return member->key; }
  Position keyAt() const { return member->at; }

  // Nothing when it isn't there. Anything may have any type: the rules look at configs with mistakes too.
  std::optional<Spot> field(std::string_view name) const;
  // field("a") and then field("b").
  std::optional<Spot> field(std::string_view a, std::string_view b) const;
  // Empty when this is no array.
  std::vector<Spot> items() const;
  // Empty when this is no object.
  std::vector<Spot> members() const;
  bool isString() const { return node->kind == Node::Kind::String; }
  // The text of the field, or "".
  std::string text(std::string_view name) const;
  // The strings of the array in the field; what is no string is left out.
  std::vector<std::string> texts(std::string_view name) const;
};

class Report {
 public:
  void error(const Spot& spot, std::string message, std::string fix, std::string reason = "");
  void warning(const Spot& spot, std::string message, std::string fix);
  // About a field's name rather than its value.
  void errorOfKey(const Spot& member, std::string message, std::string fix);
  void add(Diagnostic diagnostic);
  // Sorted by position, without repetitions.
  std::vector<Diagnostic> take();

 private:
  std::vector<Diagnostic> diagnostics;
  size_t dropped = 0;
  bool droppedError = false;
};

// " (did you mean …?)" as a fix, or `otherwise`.
std::string didYouMean(std::string_view word, const std::vector<std::string>& candidates, std::string otherwise);

}  // namespace oc::config
