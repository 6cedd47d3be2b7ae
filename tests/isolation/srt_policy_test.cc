// What a policy grants and denies, with the real srt, bubblewrap and git. Each denial stands beside the same thing
// allowed.
#include "srt_world.h"

using namespace oc;
using oc::test::get;
using oc::test::isThere;
using oc::test::put;
using oc::test::SrtWorld;

TEST_CASE("C1 C2 C4 A8 what a run reads and writes") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home(".ssh/known_hosts"), "hosts\n");
  put(world.home(".netrc"), "password\n");
  put(world.home(".config/gh/hosts.yml"), "token\n");
  put(world.home(".config/other"), "other\n");
  put(world.home("private/diary"), "diary\n");
  put(world.home("private/public/note"), "note\n");
  put(world.home("notes"), "notes\n");
  put(world.places.runFiles("r-2") + "/other", "another run's\n");
  world.policy.readDeny = {"~/private"};
  world.policy.readAllow = {"~/.config", "~/.ssh/known_hosts", "~/private/public"};
  auto script = fmt::format(R"sh(
show() {{ printf '%s: ' "$1"; cat "$1" 2>/dev/null || echo denied; }}
put() {{ printf 'write %s: ' "$1"; if echo x 2>/dev/null > "$1"; then echo done; else echo denied; fi; }}
cd "$HOME"
show .ssh/id_ed25519; show .ssh/known_hosts; show .netrc; show .config/gh/hosts.yml; show .config/other
show private/diary; show private/public/note; show notes
show .config/open-conduit/config.json; show .local/state/open-conduit/operator-token
show .local/share/open-conduit/runs/r-2/other; show .local/share/open-conduit/runs/r-1/private/srt-settings.json
put {0}/new; put {1}/new; put "$TMPDIR/new"; put notes; put .bashrc; put /tmp/oc-outside; put private/public/note
)sh",
                            world.place.workspace, world.place.runFiles);
  auto output = world.run(script).output;
  for (auto line :
       {".ssh/id_ed25519: denied", ".ssh/known_hosts: hosts", ".netrc: denied", ".config/gh/hosts.yml: denied",
        ".config/other: other", "private/diary: denied", "private/public/note: note", "notes: notes",
        ".config/open-conduit/config.json: denied", ".local/state/open-conduit/operator-token: denied",
        ".local/share/open-conduit/runs/r-2/other: denied",
        ".local/share/open-conduit/runs/r-1/private/srt-settings.json: denied", "write notes: denied",
        "write .bashrc: denied", "write /tmp/oc-outside: denied", "write private/public/note: denied"}) {
    INFO(output);
    CHECK(output.find(std::string(line) + "\n") != std::string::npos);
  }
  CHECK(get(world.place.workspace + "/new") == "x\n");
  CHECK(get(world.place.runFiles + "/new") == "x\n");
  CHECK(get(world.place.tmp + "/new") == "x\n");
  CHECK(get(world.home("notes")) == "notes\n");
}

TEST_CASE("A8 C11 a grant of the whole home leaves Open Conduit's own and the operator's claude out of reach") {
  SrtWorld world;
  put(world.home(".claude/settings.json"), "mine\n");
  put(world.home(".claude.json"), "mine\n");
  put(world.home(".ssh/id_ed25519"), "key\n");
  world.policy.write = {"~", "{workspace}"};
  auto output = world
                    .run(R"sh(
cd "$HOME"
for f in .claude/settings.json .claude.json .ssh/id_ed25519 .config/open-conduit/config.json \
         .local/state/open-conduit/operator-token; do
  cat "$f" && echo "read $f"
  mkdir -p "$(dirname "$f")"; echo evil > "$f"; rm -f "$f"; mv "$(dirname "$f")" aside && echo "moved $f"
done 2>/dev/null
echo fine > granted; echo end)sh")
                    .output;
  CHECK(output == "end\n");
  CHECK(get(world.home("granted")) == "fine\n");
  CHECK(get(world.home(".claude/settings.json")) == "mine\n");
  CHECK(get(world.home(".claude.json")) == "mine\n");
  CHECK(get(world.home(".ssh/id_ed25519")) == "key\n");
  CHECK(get(world.places.config()) == "the config\n");
  CHECK(get(world.places.operatorToken()) == "the token\n");
}

TEST_CASE("C11 a claude that is not there yet cannot be made by a run, and nothing of it is left") {
  SrtWorld world;
  world.policy.write = {"~", "{workspace}"};
  auto output =
      world.run("cd ~; mkdir -p .claude; echo evil > .claude/settings.json; echo evil > .claude.json; echo x > y")
          .output;
  CHECK(get(world.home("y")) == "x\n");
  CHECK_FALSE(isThere(world.home(".claude")));
  CHECK_FALSE(isThere(world.home(".claude.json")));
}

TEST_CASE("C4 write lifts no read deny") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home(".aws/credentials"), "key\n");
  world.policy.write = {"{workspace}", "~/.ssh", "~/.aws"};
  world.policy.readAllow = {"~/.aws"};
  CHECK(world.tries("cat ~/.ssh/id_ed25519") == "no");
  CHECK(world.tries("cat ~/.aws/credentials") == "yes");
  CHECK(world.tries("touch ~/.aws/new") == "yes");
}

TEST_CASE("C7 git's config, hooks and info are read-only, and commits work") {
  SrtWorld world;
  auto output = world
                    .run(R"sh(
git checkout -qb agent/one && echo two > file && echo new > other && git add -A && git commit -qm second && git gc -q \
  && git rev-list --count HEAD
for f in config hooks/pre-commit info/exclude config.worktree modules/x worktrees/x; do
  mkdir -p ".git/$(dirname $f)" 2>/dev/null
  echo evil 2>/dev/null >> ".git/$f" && echo "wrote $f"
done
git config core.fsmonitor /tmp/evil 2>/dev/null && echo configured
rm -rf .git/hooks .git/info .git/config 2>/dev/null; git status --short
)sh")
                    .output;
  CHECK(output == "2\n");
  auto git = world.place.workspace + "/.git";
  CHECK(get(git + "/config").find("evil") == std::string::npos);
  CHECK_FALSE(isThere(git + "/hooks/pre-commit"));
  // Placeholders are gone.
  for (auto name : {"/config.worktree", "/modules", "/worktrees", "/commondir"}) CHECK_FALSE(isThere(git + name));
}

TEST_CASE("C7 .git cannot be moved away and made anew") {
  SrtWorld world;
  auto output = world
                    .run(R"sh(
mv .git .g2 2>/dev/null && echo moved
cp -r .git .g2 && rm -rf .git 2>/dev/null
mv -T .g2 .git 2>/dev/null && echo replaced
cd ..; mv workspace w2 2>/dev/null && echo workspace moved
echo end
)sh")
                    .output;
  CHECK(output == "end\n");
  // The same moves where nobody forbids them.
  SrtWorld::outside("cd " + world.place.workspace +
                    " && mkdir -p plain/.git && cd plain && mv .git .g2 && mv .g2 .git");
}

TEST_CASE("a repository's working files are the agent's, also those that srt would forbid") {
  SrtWorld world;
  auto output = world
                    .run(R"sh(
for f in .gitmodules .mcp.json .bashrc .vscode/settings.json .idea/x .claude/commands/x; do
  mkdir -p "$(dirname $f)"; echo ok > $f || echo "denied $f"
done
git add -A && git commit -qm all && git show --stat --format= HEAD | wc -l
)sh")
                    .output;
  CHECK(output == "7\n");
}

TEST_CASE("C1 the network is what network.allow lists, through srt's proxy") {
  SrtWorld world;
  std::string why;
  // Two servers on this host's loopback that greet; one is allowed, by its address and port.
  auto serve = [&](uint16_t& port) {
    auto address = world.io.provider->getNetwork().parseAddress("127.0.0.1", 0).wait(world.io.waitScope);
    auto listener = address->listen();
    port = listener->getPort();
    return listener;
  };
  uint16_t allowed, refused;
  auto one = serve(allowed), two = serve(refused);
  auto greet = [](kj::ConnectionReceiver& from) -> kj::Promise<void> {
    return from.accept().then([](kj::Own<kj::AsyncIoStream> stream) {
      auto text = kj::StringPtr("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello");
      auto writing = stream->write(text.begin(), text.size());
      return writing.attach(kj::mv(stream));
    });
  };
  auto serving = greet(*one).eagerlyEvaluate(nullptr);
  auto alsoServing = greet(*two).eagerlyEvaluate(nullptr);
  world.policy.networkAllow = {*parseHostPattern(fmt::format("127.0.0.1:{}", allowed), why)};
  auto script = fmt::format(R"sh(
ask() {{
  local proxy=${{HTTP_PROXY#http://}} line
  exec 3<> /dev/tcp/127.0.0.1/3128
  printf 'GET http://%s/ HTTP/1.0\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n' "$1" "$1" \
    "$(printf '%s' "${{proxy%@*}}" | base64 -w 0)" >&3
  read -r line <&3; echo "$1 ${{line:9:3}}"
}}
ask 127.0.0.1:{0}; ask 127.0.0.1:{1}; ask example.org:80; ask 169.254.169.254:80
(exec 3<> /dev/tcp/127.0.0.1/{0}) 2>/dev/null && echo direct
grep -o '[a-z0-9]*:' /proc/net/dev
)sh",
                            allowed, refused);
  auto output = world.run(script).output;
  CHECK(output == fmt::format("127.0.0.1:{} 200\n127.0.0.1:{} 403\nexample.org:80 403\n169.254.169.254:80 403\nlo:\n",
                              allowed, refused));
}

TEST_CASE("C3 Unix sockets: none without unix_sockets all; with it those that lead out stay hidden") {
  SrtWorld world;
  auto listen = [&](const std::string& path) {
    makeDirectories(path.substr(0, path.rfind('/')));
    return world.io.provider->getNetwork().parseAddress("unix:" + path, 0).wait(world.io.waitScope)->listen();
  };
  auto agent = world.root + "/agent/socket", bus = world.root + "/run/bus", plain = world.root + "/plain";
  auto one = listen(agent), two = listen(bus), three = listen(plain);
  world.environ["SSH_AUTH_SOCK"] = agent;
  auto connects = [&](const std::string& path) { return world.tries("socat -u OPEN:/dev/null UNIX-CONNECT:" + path); };
  CHECK(connects(plain) == "no");
  CHECK(connects(bus) == "no");

  world.policy.allUnixSockets = true;
  CHECK(connects(plain) == "yes");
  CHECK(connects(agent) == "no");
  CHECK(connects(bus) == "no");
  CHECK(connects("/run/dbus/system_bus_socket") == "no");

  world.policy.sockets = {agent, bus};
  CHECK(connects(agent) == "yes");
  CHECK(connects(bus) == "yes");
}

TEST_CASE("C1 F1 what runs outside of the sandbox stays as it is beneath a granted folder") {
  SrtWorld world;
  auto npm = world.home(".npm");
  // As npx has it: srt with what it loads, and beside that what it does not.
  SrtWorld::outside("mkdir -p " + npm + "/_npx/1 && cp -r " + shellQuote(world.parts.modules()) + " " + npm +
                    "/_npx/1/ && echo cached > " + npm + "/cached");
  auto modules = npm + "/_npx/1/node_modules";
  auto moved = [&](std::string& part) {
    auto folder = world.parts.modules();
    if (part.starts_with(folder)) part = modules + part.substr(folder.size());
  };
  for (auto* part : {&world.parts.node, &world.parts.seccompHelper}) moved(*part);
  moved(world.parts.cli);
  world.place.programs = world.home("conduit");
  put(world.home("conduit/open-conduit-git"), "ours\n");
  put(world.home("conduit/notes"), "notes\n");
  REQUIRE(chmod(world.home("conduit/open-conduit-git").c_str(), 0755) == 0);
  world.policy.write = {"{workspace}", "~/.npm", "~/conduit"};
  auto output = world
                    .run(R"sh(
cd ~/.npm
for f in _npx/1/node_modules/*/package.json _npx/1/node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js \
         ~/conduit/open-conduit-git; do
  echo evil >> "$f" && echo "wrote $f"; rm -f "$f" && echo "removed $f"
done
for f in _npx/1/node_modules _npx/1 _npx ~/conduit/open-conduit-git; do mv "$f" "$f-aside" && echo "moved $f"; done
mkdir _npx/1/node_modules/planted && echo planted
echo mine > cached && echo mine > ~/conduit/notes && mkdir _npx/2 && echo granted
)sh")
                    .output;
  CHECK(output == "granted\n");
  CHECK(get(world.home("conduit/open-conduit-git")) == "ours\n");
  CHECK(get(npm + "/cached") == "mine\n");

  // The control: the same writes, as if it were any folder.
  world.adjust = [&](sandbox::SrtSettings& settings) {
    auto& denied = settings.settings["filesystem"]["denyWrite"];
    for (size_t i = denied.size(); i-- > 0;) {
      if (denied[i].is_string() && denied[i].get<std::string>().starts_with(world.places.home)) denied.erase(i);
    }
  };
  world.run("mkdir ~/.npm/_npx/1/node_modules/planted; echo evil > ~/conduit/open-conduit-git");
  CHECK(isThere(modules + "/planted"));
  CHECK(get(world.home("conduit/open-conduit-git")) == "evil\n");
}

TEST_CASE("C7 no grant makes git's own files writable, however it names them") {
  SrtWorld world;
  auto git = world.place.workspace + "/.git";
  put(git + "/hooks/pre-commit", "exit 0\n");
  auto before = get(git + "/config");
  REQUIRE(symlink(git.c_str(), world.home("link").c_str()) == 0);
  for (auto grants : std::vector<std::vector<std::string>>{
           {"{workspace}", "{workspace}/.git/hooks", "{workspace}/.git/config", "{workspace}/.git/info"},
           {"{workspace}/.git"},
           {"{workspace}", world.place.workspace + "//.git/./hooks/pre-commit"},
           {"{workspace}", world.places.dataDir.substr(0, world.places.dataDir.rfind('/'))}}) {
    world.policy.write = grants;
    auto output = world
                      .run(R"sh(
for f in .git/hooks/pre-commit .git/config .git/info/exclude .git/hooks/new ~/link/config; do
  echo evil 2>/dev/null >> "$f" && echo "wrote $f"; rm -f "$f" 2>/dev/null
done
echo x > .git/description && echo control
)sh")
                      .output;
    INFO(grants.back());
    CHECK(output == "control\n");
    CHECK(get(git + "/hooks/pre-commit") == "exit 0\n");
    CHECK(get(git + "/config") == before);
    CHECK_FALSE(isThere(git + "/hooks/new"));
  }
}

TEST_CASE("C1 what is granted within a folder that is readable as an exception can be written, and the rest cannot") {
  SrtWorld world;
  for (auto name : {"private/open/out/file", "private/open/file", "private/file", "listed/out/file", "listed/file"}) {
    put(world.home(name), "one\n");
  }
  makeDirectories(world.place.workspace + "/out");
  SECTION("in the workspace, which is not granted") {
    world.policy.write = {"{workspace}/out"};
    world.run("echo x > out/new; echo x > new; echo x > file");
    CHECK(get(world.place.workspace + "/out/new") == "x\n");
    CHECK_FALSE(isThere(world.place.workspace + "/new"));
    CHECK(get(world.place.workspace + "/file") == "one\n");
  }
  SECTION("in an exception from a denial") {
    world.policy.readDeny = {"~/private"};
    world.policy.readAllow = {"~/private/open"};
    world.policy.write = {"{workspace}", "~/private/open/out"};
    auto output = world
                      .run(
                          "cd ~/private; cat open/out/file open/file; cat file || echo denied; echo x > open/out/new; "
                          "echo x > open/new; echo x > open/file")
                      .output;
    CHECK(output == "one\none\ndenied\n");
    CHECK(get(world.home("private/open/out/new")) == "x\n");
    CHECK_FALSE(isThere(world.home("private/open/new")));
    CHECK(get(world.home("private/open/file")) == "one\n");
  }
  SECTION("in what read.only lists, credentials within it denied") {
    put(world.home("listed/out/.netrc"), "not the home's\n");
    put(world.home(".aws/credentials"), "key\n");
    world.policy.readOnly = {"~"};
    world.policy.write = {"{workspace}", "~/listed/out"};
    auto output = world
                      .run(
                          "cd ~/listed; cat out/file file; cat ~/.aws/credentials || echo denied; echo x > out/new; "
                          "echo x > new; echo x > file; echo two > " +
                          world.place.workspace + "/file")
                      .output;
    CHECK(output == "one\none\ndenied\n");
    CHECK(get(world.home("listed/out/new")) == "x\n");
    CHECK_FALSE(isThere(world.home("listed/new")));
    CHECK(get(world.home("listed/file")) == "one\n");
    CHECK(get(world.place.workspace + "/file") == "two\n");
  }
  SECTION("a single file cannot, and the run's notes say so") {
    world.policy.readOnly = {"~/listed"};
    world.policy.write = {"{workspace}", "~/listed/file"};
    auto made = sandbox::makeSrtSettings(world.policy, world.parts, world.places, world.place, world.environ);
    REQUIRE(made.ok());
    REQUIRE(made.value().notes.size() == 1);
    CHECK(made.value().notes[0].starts_with("write[1]: \"~/listed/file\" is no directory"));
    world.run("echo x > ~/listed/file");
    CHECK(get(world.home("listed/file")) == "one\n");
  }
}
