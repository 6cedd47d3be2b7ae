// Catch2 2 or 3, whichever is installed.
// By a guard, since it is in the precompiled header: the compiler knows a file that has the pragma by its time as well,
// which is another one in a header that came out of a cache.
#ifndef OC_TESTS_CATCH_H
#define OC_TESTS_CATCH_H
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <cstdio>
#include <cstdlib>
#include <string>

// Ends a test that this machine cannot run. tests/run counts the line as skipped; where OPEN_CONDUIT_NO_SKIP is set, as
// in continuous integration, it is a failure. (Catch2 2 has no SKIP.)
#define OC_SKIP(reason)                                                               \
  do {                                                                                \
    const char* noSkip = std::getenv("OPEN_CONDUIT_NO_SKIP");                         \
    if (noSkip != nullptr && *noSkip != '\0') FAIL("would be skipped: " << (reason)); \
    std::fprintf(stderr, "skipped: %s\n", std::string(reason).c_str());               \
    SUCCEED();                                                                        \
    return;                                                                           \
  } while (0)

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

#endif  // OC_TESTS_CATCH_H
