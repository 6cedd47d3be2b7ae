// A refusal is a value of its own, not an exception and not a failed exit: something was not done, here is
// why, and here is what a person can do about it.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace oc {

struct Refusal {
  std::string reason;  // a documented word: scripts match on it
  std::string what;    // the thing, named, in a sentence
  std::string fix;     // what to do; may be empty

  bool operator==(const Refusal&) const = default;
};

// Either a value or the refusal that came instead.
template <typename T>
class [[nodiscard]] OrRefusal {
 public:
  OrRefusal(T value) : state(std::in_place_index<0>, std::move(value)) {}
  OrRefusal(Refusal refusal) : state(std::in_place_index<1>, std::move(refusal)) {}

  bool ok() const { return state.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Only when ok().
  T& value() & { return std::get<0>(state); }
  const T& value() const& { return std::get<0>(state); }
  T&& value() && { return std::get<0>(std::move(state)); }
  // Only when not ok().
  const Refusal& refusal() const { return std::get<1>(state); }

 private:
  std::variant<T, Refusal> state;
};

}  // namespace oc
