// Every reason is in one table, and the documentation is that table.
#include "base/reasons.h"

#include <filesystem>
#include <regex>
#include <set>

#include "config_support.h"

using namespace oc;
using namespace oc::config::testing;

namespace {

// Words that stand where a refusal's or an end's reason does.
std::set<std::string> reasonsInSources() {
  std::set<std::string> found;
  std::regex form(
      R"re((?:Refusal ?\{|refuse\(\{|conclude\([^,;]*,\s*|(?:No|NoDaemon|WrongUsage),\s*\{)"([a-z]+(?:_[a-z]+)*)"|return \{"([a-z]+(?:_[a-z]+)+)", )re");
  for (auto part : {"base", "daemon", "cli", "providers", "proto"}) {
    for (auto& entry : std::filesystem::recursive_directory_iterator(sources() + "/" + part)) {
      auto kind = entry.path().extension();
      if (kind != ".cc" && kind != ".h") continue;
      auto text = readFile(entry.path(), 1 << 20);
      for (std::sregex_iterator it(text.begin(), text.end(), form), end; it != end; ++it)
        found.insert((*it)[1].matched ? (*it)[1] : (*it)[2]);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("F every reason that the sources give is in the table") {
  auto found = reasonsInSources();
  CHECK(found.count("sandbox_denied") == 1);
  CHECK(found.count("request_invalid") == 1);
  CHECK(found.size() > 20);
  for (auto& word : found) {
    INFO(word << " is not in base/reasons.cc");
    CHECK(findReason(word) != nullptr);
  }
}

TEST_CASE("F the guide's reasons have a meaning and a fix, and each word is there once") {
  for (auto word : {"sandbox_denied", "sandbox_unavailable", "container_running", "sandbox_config", "sandbox_workspace",
                    "sandbox_conflict", "attach_sandboxed"}) {
    auto* reason = findReason(word);
    REQUIRE(reason != nullptr);
    CHECK(reason->meaning.size() > 10);
    CHECK(reason->fix.size() > 5);
  }
  std::set<std::string_view> words;
  for (auto& group : reasonGroups()) {
    for (auto& reason : group.reasons) {
      INFO(reason.word);
      CHECK(words.insert(reason.word).second);
    }
  }
  CHECK(findReason("no_such_word") == nullptr);
  CHECK(fixFor("sandbox_conflict", "") == "delete one");
  CHECK(fixFor("sandbox_conflict", "delete line 3") == "delete line 3");
}

// To write the page anew: OPEN_CONDUIT_WRITE_REFERENCE=1 unit-tests "[reference]"
TEST_CASE("F docs/reasons.md is what the table says", "[reference]") {
  auto path = sources() + "/docs/reasons.md";
  auto page = reasonsPage();
  if (getenv("OPEN_CONDUIT_WRITE_REFERENCE") != nullptr) writeFileAtomically(path, page, 0644);
  INFO("to write it anew: OPEN_CONDUIT_WRITE_REFERENCE=1 unit-tests '[reference]'");
  CHECK(readFile(path, 1 << 20) == page);
}
