// Catch2 2 or 3, whichever is installed.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace oc {

// Matchers whose names differ between the two.
inline auto hasText(const std::string& text) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Matchers::Contains(text);
#endif
}

inline auto beginsWith(const std::string& text) { return Catch::Matchers::StartsWith(text); }

}  // namespace oc
