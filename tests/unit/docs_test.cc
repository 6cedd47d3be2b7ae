// What the pages have to say, whatever else they say.
#include <cstdlib>

#include "base/fd.h"
#include "tests/catch.h"

namespace {

std::string page(const std::string& name) {
  auto source = getenv("OPEN_CONDUIT_SOURCE");
  REQUIRE(source != nullptr);
  return oc::readFile(std::string(source) + "/" + name, 1 << 20);
}

// Between this heading and the next.
std::string section(const std::string& text, const std::string& heading) {
  auto begin = text.find("\n## " + heading + "\n");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("G4 the security model says plainly what is not covered") {
  auto uncovered = section(page("docs/security.md"), "What is not covered");
  CHECK(says(uncovered, "An allowed host can receive whatever a run can read"));
  CHECK(says(uncovered, "A run's own credentials are readable inside it"));
  CHECK(says(uncovered, "The tools are trusted"));
  CHECK(says(uncovered, "It denies rather than allows"));
}

TEST_CASE("G5 what could not be tried is called untested") {
  CHECK(says(page("README.md"), "macOS and Docker Desktop are untested"));
  CHECK(says(page("docs/security.md"), "Not tried: macOS"));
}
