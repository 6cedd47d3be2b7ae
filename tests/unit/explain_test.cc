// config explain says what the very settings of a run say.
#include "daemon/explain/explain.h"

#include <algorithm>

#include "base/fd.h"
#include "config_support.h"

using namespace oc;
using namespace oc::config::testing;

namespace {

struct World {
  World() {
    char name[] = "/tmp/oc-explain-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root = name;
    places = {root + "/home", root + "/home/.config/open-conduit", root + "/home/.local/state/open-conduit",
              root + "/home/.local/share/open-conduit", root + "/run/open-conduit"};
    for (auto& directory : {places.configDir, places.stateDir, places.dataDir, places.runtimeDir, places.home + "/.ssh",
                            places.home + "/.npm", places.home + "/.config/op"}) {
      makeDirectories(directory);
    }
    environ = {{"XDG_RUNTIME_DIR", root + "/run"}, {"HOME", places.home}};
  }
  ~World() { removeTree(root); }

  const explain::Explanation& of(const std::string& text, const std::string& binding = "s/b") {
    auto loaded = config::loadText(text, "config.json", {places.home});
    INFO(rendered(loaded));
    REQUIRE(loaded.config.has_value());
    config = std::move(*loaded.config);
    auto made = explain::explain({config, *config.findBinding(binding), places, environ});
    if (!made.ok()) FAIL(made.refusal().what);
    explanation = std::move(made.value());
    return *explanation;
  }

  bool reads(const std::string& path) { return answer(explanation->mayRead(path)); }
  bool writes(const std::string& path) { return answer(explanation->mayWrite(path)); }
  bool reaches(const std::string& host) { return answer(explanation->mayReach(host)); }
  std::string why(const OrRefusal<explain::Answer>& given) {
    return given.ok() ? given.value().why : given.refusal().what;
  }
  static bool answer(const OrRefusal<explain::Answer>& given) {
    REQUIRE(given.ok());
    CHECK_FALSE(given.value().why.empty());
    return given.value().yes;
  }
  bool says(const std::string& area, bool allowed, const std::string& what, const std::string& rule) {
    auto& lines = explanation->lines();
    return std::any_of(lines.begin(), lines.end(), [&](auto& line) {
      return line.area == area && line.allowed == allowed && line.what == what &&
             line.rule.find(rule) != std::string::npos;
    });
  }

  std::string root;
  Places places;
  std::map<std::string, std::string> environ;
  config::Config config;
  std::unique_ptr<explain::Explanation> explanation;
};

}  // namespace

TEST_CASE("D2 explain: a process sandbox, line by line and question by question") {
  World world;
  world.of(withSrt(
      R"("write": ["{workspace}", "~/.npm"], "read": {"deny": ["~/.config/op"], "allow": ["~/.ssh/known_hosts"]},
                      "network": {"allow": ["github.com", "*.example.org:443"]})"));
  CHECK(world.says("write", true, "{workspace}", "write[0]"));
  CHECK(world.says("write", true, "~/.npm", "write[1]"));
  CHECK(world.says("write", true, "{run}", "always"));
  CHECK(world.says("write", false, "{workspace}/.git/hooks", "git"));
  CHECK(world.says("read", false, "~/.ssh", "common credentials"));
  CHECK(world.says("read", true, "~/.ssh/known_hosts", "read.allow[0]"));
  CHECK(world.says("read", false, "~/.config/op", "read.deny[0]"));
  CHECK(world.says("read", false, "~/.claude", "your own claude"));
  CHECK(world.says("host", true, "github.com (any port)", "network.allow[0]"));
  CHECK(world.says("socket", false, "every Unix socket", "unix_sockets"));

  CHECK_FALSE(world.reads("~/.ssh/id_ed25519"));
  CHECK(world.reads("~/.ssh/known_hosts"));
  CHECK(world.reads("/etc/passwd"));
  CHECK_FALSE(world.reads(world.places.stateDir + "/operator-token"));
  CHECK_FALSE(world.reads("~/.config/op/session"));
  CHECK(world.writes("{workspace}/src/main.c"));
  CHECK_FALSE(world.writes("{workspace}/.git/config"));
  CHECK(world.writes("{workspace}/.git/refs/heads/x"));
  CHECK(world.writes("{run}/x"));
  CHECK_FALSE(world.writes("~/.bashrc"));
  CHECK_FALSE(world.writes("/tmp/x"));
  for (auto own : {"/dev/null", "/dev/shm/x"}) CHECK((world.reads(own) && world.writes(own)));
  CHECK_FALSE(world.writes("/dev/shmx"));
  CHECK(world.reaches("github.com"));
  CHECK(world.reaches("GitHub.com:22"));
  CHECK(world.reaches("a.example.org"));
  CHECK_FALSE(world.reaches("a.example.org:80"));
  CHECK_FALSE(world.reaches("example.org"));
  CHECK_FALSE(world.reaches("evilgithub.com"));
  for (auto bad : {"", "*.x.org", "https://x", "a b"}) CHECK_FALSE(world.explanation->mayReach(bad).ok());
  for (auto bad : {"", "x", "{nowhere}/x"}) CHECK_FALSE(world.explanation->mayRead(bad).ok());
}

TEST_CASE("C4 explain: only the exact path lifts a denial, and write lifts none") {
  World world;
  makeDirectories(world.places.home + "/.kube");
  makeDirectories(world.places.home + "/.config/gh");
  world.of(withSrt(R"("write": ["~/.kube"], "read": {"allow": ["~/.config", "~/.ssh"]})"));
  CHECK_FALSE(world.reads("~/.config/gh/hosts.yml"));
  CHECK(world.reads("~/.ssh/id_ed25519"));
  CHECK_FALSE(world.writes("~/.kube/config"));
  CHECK(world.explanation->notes().size() >= 1);
}

TEST_CASE("D2 explain: the strict mode has what is listed, and nothing else") {
  World world;
  world.of(withSrt(R"("write": ["{workspace}"], "read": {"only": ["~/.npm"]})"));
  CHECK(world.says("read", false, "/", "read.only"));
  CHECK(world.says("read", true, "~/.npm", "read.only[0]"));
  CHECK(world.says("read", true, "/usr", "the system's"));
  CHECK(world.says("read", true, "{workspace}", "the run's workspace"));
  CHECK_FALSE(world.says("read", true, "what you can read", ""));
  CHECK(world.reads("~/.npm/x"));
  CHECK(world.reads("{workspace}/x"));
  CHECK(world.reads("/usr/bin/env"));
  for (auto path : {"~/x", "~/.config/op", "/etc/shadow", "/var/log", "~/.ssh/id_ed25519", "/"})
    CHECK_FALSE(world.reads(path));
  CHECK_FALSE(world.writes("~/.npm/x"));
  CHECK(world.writes("{workspace}/x"));
  CHECK((world.reads("/dev/null") && world.writes("/dev/null")));
}

TEST_CASE("D2 explain: a container has what is listed, and nothing else of the machine") {
  World world;
  world.of(withDocker(
      R"("write": ["{workspace}"], "read": ["~/.npm"], "network": {"allow": ["example.org:443"]}, "limits": {"memory": "8g"})"));
  CHECK(world.says("write", true, "{workspace}", "write[0]"));
  CHECK(world.says("container", true, "at most 8g of memory", "limits.memory"));
  CHECK(world.says("container", true, "at most 4096 processes", "limits.pids"));
  CHECK(world.reads("~/.npm/x"));
  CHECK_FALSE(world.writes("~/.npm/x"));
  CHECK_FALSE(world.reads("/etc/passwd"));
  CHECK_FALSE(world.reads("~/.ssh"));
  CHECK(world.writes("{workspace}/x"));
  CHECK_FALSE(world.writes("{workspace}/.git/hooks/post-commit"));
  CHECK(world.writes("{run}"));
  CHECK_FALSE(world.reaches("example.org:80"));
  CHECK(world.reaches("example.org"));
}

TEST_CASE("A1 explain: without a sandbox everything is open, and it says so") {
  World world;
  world.of(withShell(""));
  CHECK(world.reads("~/.ssh/id_ed25519"));
  CHECK(world.writes("~/.bashrc"));
  CHECK(world.reaches("evil.test"));
  CHECK(world.explanation->notes().size() == 1);
}

TEST_CASE("D4 explain: an operation and a secret need both sides, and the answer says which is missing") {
  World world;
  world.of(R"({"version": 1, "scopes": [{"id": "s", "secret_refs": {"key": "keyring:k", "other": "env:O"},
    "authorization": {"operations": ["github.issue.get", "github.pull.get", "@conduit.work"]},
    "bindings": [{"name": "b", "executor": "shell", "operations": ["github.issue.get", "github.pull.open", "conduit.work.get"], "secret_names": ["key"],
      "config": {"command": ["true"], "secret_env": {"key": "KEY"}}}]}]})");
  CHECK(world.explanation->mayCall("github.issue.get").yes);
  auto open = world.explanation->mayCall("github.pull.open"), get = world.explanation->mayCall("github.pull.get"),
       none = world.explanation->mayCall("github.git.credential");
  CHECK_FALSE(open.yes);
  CHECK_THAT(open.why, hasText("scope"));
  CHECK_FALSE(get.yes);
  CHECK_THAT(get.why, hasText("binding"));
  CHECK_FALSE(none.yes);
  CHECK_THAT(none.why, hasText("neither"));
  CHECK(world.explanation->mayCall("conduit.work.get").yes);
  auto note = world.explanation->mayCall("conduit.work.note");
  CHECK_FALSE(note.yes);
  CHECK_THAT(note.why, hasText("the binding does not list it"));
  CHECK(world.says("call", true, "conduit.work.get", "both have it"));
  CHECK(world.says("call", false, "github.pull.open", "authorization"));
  CHECK(world.says("secret", true, "key in KEY", "keyring:k"));
  CHECK(world.says("secret", false, "other", "does not select"));
}

TEST_CASE("A8 explain: a policy that reaches into Open Conduit's own is told as the refusal that a run would get") {
  World world;
  auto loaded =
      config::loadText(withSrt("\"write\": [\"" + world.places.stateDir + "\"]"), "config.json", {world.places.home});
  REQUIRE(loaded.config.has_value());
  auto made = explain::explain({*loaded.config, *loaded.config->findBinding("s/b"), world.places, world.environ});
  REQUIRE_FALSE(made.ok());
  CHECK(made.refusal().reason == "sandbox_denied");
}
