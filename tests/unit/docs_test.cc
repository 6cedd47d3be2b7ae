// What the documentation has to say, and that its links lead somewhere.
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "config_support.h"
#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;
using oc::config::testing::sources;

std::string page(const std::string& name) { return oc::readFile(sources() + "/docs/" + name, 1 << 20); }

std::string section(const std::string& text, const std::string& heading) {
  auto from = text.find("\n## " + heading + "\n");
  REQUIRE(from != std::string::npos);
  return text.substr(from, text.find("\n## ", from + 1) - from);
}

// Of Markdown: ](target), without what leads to other places than files.
std::vector<std::string> linksIn(const std::string& text) {
  std::vector<std::string> links;
  for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
    auto target = text.substr(at + 2, text.find(')', at) - at - 2);
    if (target.find("://") == std::string::npos && !target.starts_with('#'))
      links.push_back(target.substr(0, target.find('#')));
  }
  return links;
}

}  // namespace

TEST_CASE("G4 the contracts of both sandboxes, and what they do not cover, are said plainly") {
  auto security = page("security.md");
  for (auto heading : {"The process sandbox contract", "The gateway contract"}) {
    CHECK(section(security, heading).find("| ") != std::string::npos);
  }
  auto uncovered = section(security, "What is not covered");
  for (auto text :
       {"An allowed host can receive whatever a run can read", "A run's own credentials are readable inside it",
        "The tools are trusted", "It denies rather than allows"}) {
    INFO(text);
    CHECK(uncovered.find(text) != std::string::npos);
  }
}

TEST_CASE("G5 the documentation says what was never tried") {
  auto uncovered = section(page("security.md"), "What is not covered");
  auto from = uncovered.find("Not tried:");
  REQUIRE(from != std::string::npos);
  for (auto name : {"macOS", "Docker Desktop", "OrbStack", "Ubuntu"}) {
    INFO(name);
    CHECK(uncovered.find(name, from) != std::string::npos);
  }
}

TEST_CASE("every file that a page links to is there") {
  std::vector<std::string> broken;
  std::vector<fs::path> pages = {sources() + "/README.md"};
  for (auto& entry : fs::directory_iterator(sources() + "/docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  CHECK(pages.size() > 5);
  for (auto& each : pages) {
    for (auto& link : linksIn(oc::readFile(each.string(), 1 << 20))) {
      if (!fs::exists(each.parent_path() / link)) broken.push_back(each.filename().string() + ": " + link);
    }
  }
  CHECK(broken == std::vector<std::string>{});
}
