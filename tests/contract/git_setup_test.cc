// What git itself makes of the config that a run gets.
#include "daemon/work/git_setup.h"

#include <cstdio>

#include "base/fd.h"
#include "git_fixture.h"
#include "tests/catch.h"

using namespace oc;
using namespace oc::git::tests;

namespace {

// What git would sign in with; "" when it would ask somebody.
std::string signsIn(const work::GitSetup& setup, const std::string& variables, const std::string& url) {
  auto command = "cd /; printf 'url=" + url +
                 "\n\n' | env -i PATH=/usr/bin:/bin HOME=/nonexistent GIT_TERMINAL_PROMPT=0 " + variables +
                 " GIT_CONFIG_SYSTEM=" + setup.file + " git credential fill 2>/dev/null";
  FILE* stream = popen(command.c_str(), "r");
  REQUIRE(stream != nullptr);
  std::string text;
  char buffer[4096];
  while (size_t size = fread(buffer, 1, sizeof(buffer), stream)) text.append(buffer, size);
  pclose(stream);
  return text;
}

}  // namespace

TEST_CASE("B15 git signs in with the personal access token of the run's secrets, at its own hosts alone") {
  World world;
  config::Config config;
  config.connections.resize(1);
  config.connections[0].id = "enterprise";
  config.connections[0].apiUrl = "https://git.example.test/api/v3";
  config::Binding binding;
  binding.connection = "enterprise";
  CHECK(work::hostsOfTokens(config, binding).empty());
  binding.container.emplace();
  auto setup = work::setUpGit(world.root, "/nowhere", work::hostsOfTokens(config, binding));
  writeFileAtomically(setup.file, setup.text);

  auto with = [](const std::string& token) { return "username=x-access-token\npassword=" + token + "\n"; };
  for (auto host : {"github.com", "git.example.test"}) {
    auto url = std::string("https://") + host + "/o/r.git";
    CHECK(signsIn(setup, "GH_TOKEN=one", url).find(with("one")) != std::string::npos);
    CHECK(signsIn(setup, "GITHUB_TOKEN=two", url).find(with("two")) != std::string::npos);
    CHECK(signsIn(setup, "GH_TOKEN=one GITHUB_TOKEN=two", url).find(with("one")) != std::string::npos);
    CHECK(signsIn(setup, "OTHER=three", url).empty());
  }
  for (auto url : {"https://github.com.evil.test/o/r", "https://example.com/o/r", "http://github.com/o/r",
                   "https://evilgithub.com/", "https://github.com:444/o/r"}) {
    INFO(url);
    CHECK(signsIn(setup, "GH_TOKEN=one", url).empty());
  }
}
