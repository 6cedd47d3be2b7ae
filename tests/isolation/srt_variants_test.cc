// The same promises where paths lie in other ways: behind links, not there yet, or swapped for something else between
// the plan and the start.
#include <sys/stat.h>
#include <unistd.h>

#include "srt_world.h"

using namespace oc;
using oc::test::get;
using oc::test::isThere;
using oc::test::put;
using oc::test::SrtWorld;

namespace {

void link(const std::string& target, const std::string& at) {
  makeDirectories(at.substr(0, at.rfind('/')));
  REQUIRE(symlink(target.c_str(), at.c_str()) == 0);
}

void go(SrtWorld& world) { world.instance->agentInput->write("go\n", 3).wait(world.io.waitScope); }

constexpr auto functions = R"sh(
show() { printf '%s: ' "$1"; cat "$1" 2>/dev/null || echo denied; }
put() { printf 'write %s: ' "$1"; if echo x 2>/dev/null > "$1"; then echo done; else echo denied; fi; }
cd "$HOME"
)sh";

}  // namespace

TEST_CASE("C1 C2 C4 C11 behind links, at the end of a path and in its middle, each under all of its names") {
  SrtWorld world([](SrtWorld& world) {
    // The XDG places lie elsewhere, so that ~/.config can be a link.
    world.places.configDir = world.home("xdg/open-conduit");
  });
  put(world.home("dotfiles/ssh/id_ed25519"), "key\n");
  put(world.home("dotfiles/netrc"), "password\n");
  put(world.home("dotfiles/config/gh/hosts.yml"), "token\n");
  put(world.home("dotfiles/config/other"), "other\n");
  put(world.home("dotfiles/claude/settings.json"), "claude\n");
  put(world.home("disk/private/diary"), "diary\n");
  put(world.home("disk/private/open/note"), "note\n");
  put(world.home("disk/granted/file"), "granted\n");
  put(world.home("disk/beside"), "beside\n");
  link("dotfiles/ssh", world.home(".ssh"));
  link(world.home("dotfiles/netrc"), world.home(".netrc"));
  link("./dotfiles/config", world.home(".config"));
  link("dotfiles/claude", world.home(".claude"));
  link("disk", world.home("way"));
  link("way/granted", world.home("chain"));
  world.policy.write = {"{workspace}", "~/chain", "~/dotfiles"};
  world.policy.readDeny = {"~/way/private"};
  world.policy.readAllow = {"~/way/private/open"};
  auto output = world
                    .run(std::string(functions) + R"sh(
show .ssh/id_ed25519; show dotfiles/ssh/id_ed25519; show .netrc; show dotfiles/netrc
show .config/gh/hosts.yml; show dotfiles/config/gh/hosts.yml; show .config/other
show .claude/settings.json; show dotfiles/claude/settings.json
show way/private/diary; show disk/private/diary; show way/private/open/note; show disk/private/open/note
put chain/one; put way/granted/two; put disk/granted/three; put way/beside; put disk/beside; put dotfiles/netrc
put dotfiles/claude/settings.json; mv dotfiles/claude dotfiles/c2 2>/dev/null; mkdir -p dotfiles/claude
put .claude/settings.json; put dotfiles/made
)sh")
                    .output;
  for (auto line : {".ssh/id_ed25519: denied", "dotfiles/ssh/id_ed25519: denied", ".config/gh/hosts.yml: denied",
                    "dotfiles/config/gh/hosts.yml: denied", ".config/other: other", ".claude/settings.json: denied",
                    "dotfiles/claude/settings.json: denied", "way/private/diary: denied", "disk/private/diary: denied",
                    "way/private/open/note: note", "disk/private/open/note: note", "write chain/one: done",
                    "write way/granted/two: done", "write disk/granted/three: done", "write way/beside: denied",
                    "write disk/beside: denied", "write dotfiles/made: done"}) {
    INFO(output);
    CHECK(output.find(std::string(line) + "\n") != std::string::npos);
  }
  CHECK(output.find("password") == std::string::npos);
  for (auto name : {"one", "two", "three"}) CHECK(get(world.home("disk/granted/") + name) == "x\n");
  CHECK(get(world.home("disk/beside")) == "beside\n");
  CHECK(get(world.home("dotfiles/netrc")) == "password\n");
  CHECK(get(world.home("dotfiles/claude/settings.json")) == "claude\n");
  CHECK(get(world.home("dotfiles/ssh/id_ed25519")) == "key\n");
}

TEST_CASE("C1 C2 C11 A8 a home that is a link: what is denied and granted there is so under both names") {
  SrtWorld world([](SrtWorld& world) {
    makeDirectories(world.places.home);
    link("home", world.root + "/linked");
    // As findPlaces has it: our own by their real paths, the home by its name.
    world.places.home = world.root + "/linked";
  });
  auto real = world.root + "/home/";
  put(real + ".ssh/id_ed25519", "key\n");
  put(real + ".claude.json", "claude\n");
  put(real + "granted/file", "one\n");
  put(real + "notes", "notes\n");
  world.policy.write = {"{workspace}", "~/granted"};
  auto output = world
                    .run("for home in ../linked ../home; do cd \"$HOME/$home\"\n" +
                         std::string(functions).substr(0, std::string(functions).rfind("cd")) + R"sh(
show .ssh/id_ed25519; show .claude.json; show .local/state/open-conduit/operator-token
show .config/open-conduit/config.json; show notes; put granted/made; put notes; done
)sh")
                    .output;
  std::string once =
      ".ssh/id_ed25519: denied\n.claude.json: denied\n.local/state/open-conduit/operator-token: denied\n"
      ".config/open-conduit/config.json: denied\nnotes: notes\nwrite granted/made: done\nwrite notes: denied\n";
  CHECK(output == once + once);
  CHECK(get(real + "granted/made") == "x\n");
  CHECK(get(real + "notes") == "notes\n");
}

TEST_CASE("C1 a grant that became a link between the plan and the start lets nothing be written elsewhere") {
  auto [swapped, toState] =
      GENERATE(table<const char*, bool>({{"granted", false}, {"granted/sub", false}, {"granted/sub", true}}));
  INFO(swapped << " " << toState);
  SrtWorld world;
  put(world.home("granted/sub/file"), "granted\n");
  put(world.home("valuable/sub/file"), "valuable\n");
  put(world.home("valuable/file"), "valuable\n");
  world.policy.write = {"{workspace}", "~/granted/sub"};
  auto script = std::string(functions) +
                "put granted/sub/file; put granted/sub/new; put valuable/sub/file; put "
                "valuable/new; show granted/sub/operator-token";
  // Control: as it was planned.
  CHECK(world.run(script).output.find("write granted/sub/new: done\n") != std::string::npos);
  CHECK(get(world.home("granted/sub/new")) == "x\n");
  world.adjust = [&world, swapped = std::string(swapped), toState = toState](sandbox::SrtSettings&) {
    REQUIRE(rename(world.home(swapped).c_str(), world.home("aside").c_str()) == 0);
    link(toState ? world.places.stateDir : world.home("valuable"), world.home(swapped));
  };
  auto output = world.run(script).output;
  INFO(output);
  CHECK(output.find("done") == std::string::npos);
  CHECK(output.find("the token") == std::string::npos);
  CHECK(get(world.home("valuable/sub/file")) == "valuable\n");
  CHECK(get(world.home("valuable/file")) == "valuable\n");
  for (auto name : {"valuable/new", "valuable/sub/new"}) CHECK_FALSE(isThere(world.home(name)));
  CHECK(get(world.places.operatorToken()) == "the token\n");
}

TEST_CASE("C2 C4 what became a link between the plan and the start lifts no denial and escapes none") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home(".ssh/known_hosts"), "hosts\n");
  put(world.home(".aws/credentials"), "another key\n");
  put(world.home("private/diary"), "diary\n");
  put(world.home("shown/file"), "shown\n");
  world.policy.readDeny = {"~/private"};
  world.policy.readAllow = {"~/.ssh/known_hosts"};
  auto script = std::string(functions) +
                "show .ssh/known_hosts; show .ssh/id_ed25519; show private/diary; show moved/diary; show shown/file";
  CHECK(world.run(script).output ==
        ".ssh/known_hosts: hosts\n.ssh/id_ed25519: denied\nprivate/diary: denied\nmoved/diary: denied\n"
        "shown/file: shown\n");
  world.adjust = [&world](sandbox::SrtSettings&) {
    REQUIRE(unlink(world.home(".ssh/known_hosts").c_str()) == 0);
    link("../.aws/credentials", world.home(".ssh/known_hosts"));
    REQUIRE(rename(world.home("private").c_str(), world.home("moved").c_str()) == 0);
    link("moved", world.home("private"));
  };
  CHECK(world.run(script).output ==
        ".ssh/known_hosts: denied\n.ssh/id_ed25519: denied\nprivate/diary: denied\nmoved/diary: denied\n"
        "shown/file: shown\n");
}

TEST_CASE("C2 what comes to be during the run is hidden, beneath folders that were not there and behind links, too") {
  SrtWorld world;
  put(world.home("dotfiles/netrc"), "password\n");
  put(world.home("dotfiles/aws/credentials"), "key\n");
  world.policy.readDeny = {"~/later/deep/secret"};
  world.start();
  REQUIRE(world
              .launch(R"sh(
cd; echo up; read go
cat later/deep/secret .netrc .aws/credentials 2>/dev/null; cat later/deep/plain; echo end)sh")
              .reason.empty());
  REQUIRE(world.instance->waitForOutput("up"));
  put(world.home("later/deep/secret"), "secret\n");
  put(world.home("later/deep/plain"), "plain\n");
  link("dotfiles/netrc", world.home(".netrc"));
  link(world.home("dotfiles/aws"), world.home(".aws"));
  world.io.provider->getTimer().afterDelay(700 * kj::MILLISECONDS).wait(world.io.waitScope);
  go(world);
  CHECK(world.instance->wait().output == "up\nplain\nend\n");
}

TEST_CASE("C1 C4 letters have their case: a name that differs in it grants and lifts nothing") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home("granted/file"), "one\n");
  put(world.home("private/diary"), "diary\n");
  put(world.home("Private/diary"), "another diary\n");
  world.policy.write = {"{workspace}", "~/Granted"};
  world.policy.readDeny = {"~/private"};
  world.policy.readAllow = {"~/.SSH", "~/Private"};
  auto output = world
                    .run(std::string(functions) +
                         "show .ssh/id_ed25519; put granted/file; show private/diary; show Private/diary")
                    .output;
  CHECK(output ==
        ".ssh/id_ed25519: denied\nwrite granted/file: denied\nprivate/diary: denied\nPrivate/diary: another diary\n");
}

TEST_CASE("C3 a socket is lifted by its path, however that is written, and by a link to it it is not") {
  SrtWorld world;
  auto listen = [&](const std::string& path) {
    makeDirectories(path.substr(0, path.rfind('/')));
    return world.io.provider->getNetwork().parseAddress("unix:" + path, 0).wait(world.io.waitScope)->listen();
  };
  auto agent = world.root + "/agent/socket", bus = world.root + "/run/bus";
  auto one = listen(agent), two = listen(bus);
  link(agent, world.home("way/to/agent"));
  link(world.root + "/run", world.home("runtime"));
  world.environ["SSH_AUTH_SOCK"] = agent;
  world.policy.allUnixSockets = true;
  auto connects = [&](const std::string& path) { return world.tries("socat -u OPEN:/dev/null UNIX-CONNECT:" + path); };
  for (auto& path : {agent, bus, world.home("way/to/agent"), world.home("runtime/bus"),
                     world.root + "/agent/../agent//socket", "/proc/self/root" + agent}) {
    INFO(path);
    CHECK(connects(path) == "no");
  }
  world.policy.sockets = {world.root + "//agent/./x/../socket"};
  CHECK(connects(agent) == "yes");
  CHECK(connects(world.home("way/to/agent")) == "yes");
  CHECK(connects(bus) == "no");
}

TEST_CASE("C6 no run can make a hard link to what it may not write, nor from one grant into another") {
  SrtWorld world;
  put(world.home("notes"), "notes\n");
  put(world.home("granted/file"), "granted\n");
  world.policy.write = {"{workspace}", "~/granted"};
  auto output = world
                    .run(R"sh(
try() { ln "$1" "$2" 2>/dev/null && echo "linked $2"; }
try ~/notes notes; try /usr/bin/git git; try ~/granted/file from-grant; try file ~/granted/from-workspace
try ~/notes ~/granted/notes; try .git/config config; try "$TMPDIR/../body" body; echo x > "$TMPDIR/x"; try "$TMPDIR/x" from-run
try file own; try ~/granted/file ~/granted/own; echo end
)sh")
                    .output;
  CHECK(output == "linked own\nlinked " + world.home("granted/own") + "\nend\n");
  // Control: outside the same links can be made.
  SrtWorld::outside("cd " + world.place.workspace + " && ln " + world.home("granted/file") +
                    " from-grant && ln .git/config config");
}

TEST_CASE("C3 a socket that leads out and is bound during the run is hidden, one that the policy lifts is not") {
  SrtWorld world;
  auto listen = [&](const std::string& path) {
    makeDirectories(path.substr(0, path.rfind('/')));
    return world.io.provider->getNetwork().parseAddress("unix:" + path, 0).wait(world.io.waitScope)->listen();
  };
  auto agent = world.root + "/ssh-abc/agent.7", engine = world.root + "/x/docker.sock",
       lifted = world.root + "/y/docker.sock", plain = world.root + "/x/plain";
  makeDirectories(world.root + "/x");
  makeDirectories(world.root + "/y");
  world.policy.allUnixSockets = true;
  world.policy.sockets = {lifted};
  world.start();
  auto script =
      std::string("echo up; read go; for s in") + " " + agent + " " + engine + " " + lifted + " " + plain +
      "; do socat -u OPEN:/dev/null UNIX-CONNECT:$s 2>/dev/null && echo \"reached ${s##*/x/}\"; done; echo end";
  REQUIRE(world.launch(script).reason.empty());
  REQUIRE(world.instance->waitForOutput("up"));
  auto one = listen(agent), two = listen(engine), three = listen(lifted), four = listen(plain);
  world.io.provider->getTimer().afterDelay(1500 * kj::MILLISECONDS).wait(world.io.waitScope);
  go(world);
  CHECK(world.instance->wait().output == "up\nreached " + lifted + "\nreached plain\nend\n");
}
