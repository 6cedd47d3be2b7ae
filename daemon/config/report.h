// Collects what is found wrong, and walks the tree with the names of the places.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "document.h"
#include "load.h"

namespace oc::config {

// A value and its place.
struct Spot {
  const Node* node = nullptr;  // never null
  std::string path;
  Position keyAt = {};  // of the field's name, when it is a field's value

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
  // Its last name: of a member, the key.
  std::string key = {};
};

class Report {
 public:
  void error(const Spot& spot, std::string message, std::string fix, std::string reason = "");
  void warning(const Spot& spot, std::string message, std::string fix);
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
