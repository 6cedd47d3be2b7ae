// What a part may include; see docs/architecture.md, "The build". All parts are linked from one archive, so the linker
// would not notice a provider that knows the daemon.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "config_support.h"
#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> layers = {
    {"base", {}},
    {"proto", {"base"}},
    {"providers/kit", {"base", "proto"}},
    {"providers/run", {"base", "proto", "providers/kit"}},
    {"providers/srt", {"base", "proto", "providers/kit"}},
    {"providers/host", {"base", "proto", "providers/kit"}},
    {"providers/git", {"base", "proto", "providers/kit"}},
    {"providers/github", {"base", "proto", "providers/kit"}},
    {"providers/docker", {"base", "proto", "providers/kit"}},
    {"providers/keyring", {"base", "proto", "providers/kit"}},
    {"daemon/config", {"base"}},
    {"daemon/state", {"base"}},
    {"daemon/sandbox", {"base", "daemon/config"}},
    {"daemon/supervisor", {"base", "proto", "providers/kit"}},
    {"daemon/control", {"base", "proto", "daemon/state"}},
    {"daemon/toolbelt", {"base", "proto", "daemon/state"}},
    {"daemon/github", {"base", "proto", "daemon/config", "daemon/state", "daemon/supervisor", "daemon/toolbelt"}},
    {"daemon/work",
     {"base", "proto", "daemon/config", "daemon/state", "daemon/sandbox", "daemon/supervisor", "daemon/control",
      "daemon/toolbelt"}},
    {"daemon/explain", {"base", "daemon/config", "daemon/github", "daemon/sandbox", "daemon/toolbelt", "daemon/work"}},
    {"daemon/attack",
     {"base", "proto", "daemon/config", "daemon/explain", "daemon/sandbox", "daemon/state", "daemon/supervisor",
      "daemon/work"}},
    {"attack", {}},
    {"cli", {"base", "proto", "daemon/config", "daemon/explain"}},
    {"gateway", {"base", "proto"}},
};

// "daemon/config/model.h" → "daemon/config"; nothing for a name that is no part's, as of a file beside the includer.
std::string partOf(const std::string& path) {
  for (auto& [part, below] : layers) {
    if (path.rfind(part + "/", 0) == 0) return part;
  }
  return "";
}

std::vector<std::string> includesOf(const fs::path& file) {
  std::vector<std::string> result;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("#include \"", 0) == 0) result.push_back(line.substr(10, line.find('"', 10) - 10));
  }
  return result;
}

std::vector<std::string> wrongArrows(const fs::path& root) {
  std::vector<std::string> wrong;
  for (auto& [part, below] : layers) {
    for (auto& entry : fs::recursive_directory_iterator(root / part)) {
      if (entry.path().extension() != ".cc" && entry.path().extension() != ".h") continue;
      for (auto& include : includesOf(entry.path())) {
        auto other = partOf(include);
        if (!other.empty() && other != part && below.count(other) == 0) {
          wrong.push_back(entry.path().string() + " includes " + include);
        }
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("parts include only the parts below them") {
  CHECK(wrongArrows(oc::config::testing::sources()) == std::vector<std::string>{});
}

TEST_CASE("an include that points up is noticed") {
  char name[] = "/tmp/oc-layers-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  fs::path root = name;
  for (auto& [part, below] : layers) fs::create_directories(root / part);
  std::ofstream(root / "providers/git/spy.cc") << "#include \"base/fd.h\"\n#include \"daemon/state/store.h\"\n";
  CHECK(wrongArrows(root).size() == 1);
  fs::remove_all(root);
}
