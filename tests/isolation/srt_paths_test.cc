// Policies whose paths are written or lie in other ways than one would think of, with the real srt.
#include <unistd.h>

#include "srt_world.h"

using namespace oc;
using oc::test::get;
using oc::test::isThere;
using oc::test::put;
using oc::test::SrtWorld;

TEST_CASE("C2 C4 a path is what it names, however it is written") {
  SrtWorld world;
  put(world.home("private/diary"), "diary\n");
  put(world.home("private/open/note"), "note\n");
  put(world.home("privately"), "another\n");
  REQUIRE(symlink(world.home("private").c_str(), world.home("way").c_str()) == 0);
  world.policy.readDeny = {"~/x/../private//."};
  world.policy.readAllow = {"~//private/./open/"};
  world.policy.write = {"{workspace}/../workspace/"};
  auto output = world
                    .run(R"sh(
cd "$HOME"
for path in private/diary private//diary ./private/../private/diary way/diary way/open/../diary \
            /proc/self/root$HOME/private/diary private/open/note way/open/note privately; do
  printf '%s: ' "${path#/proc/self/root$HOME/}"; cat "$path" 2>/dev/null || echo denied
done
)sh")
                    .output;
  CHECK(output ==
        "private/diary: denied\nprivate//diary: denied\n./private/../private/diary: denied\nway/diary: denied\n"
        "way/open/../diary: denied\nprivate/diary: denied\nprivate/open/note: note\nway/open/note: note\n"
        "privately: another\n");
  CHECK(world.tries("touch new") == "yes");
}

TEST_CASE("C1 C2 A8 C11 a home that is a link is the home all the same") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home(".claude/settings.json"), "mine\n");
  put(world.home("notes"), "notes\n");
  auto real = world.root + "/elsewhere/you";
  makeDirectories(world.root + "/elsewhere");
  REQUIRE(rename(world.places.home.c_str(), real.c_str()) == 0);
  REQUIRE(symlink(real.c_str(), world.places.home.c_str()) == 0);
  world.policy.write = {"{workspace}", "~/granted"};
  makeDirectories(real + "/granted");
  auto script = fmt::format(R"sh(
for home in "$HOME" {0}; do
  for path in .ssh/id_ed25519 .claude/settings.json .config/open-conduit/config.json .local/state/open-conduit/operator-token \
              notes; do
    cat "$home/$path" 2>/dev/null || echo denied
  done
  (echo x >"$home/new") 2>/dev/null && echo wrote
  echo y >"$home/granted/file" || echo refused
done
echo two > file && git commit -qam second && git rev-list --count HEAD
)sh",
                            real);
  auto result = world.run(script);
  INFO(result.errors);
  CHECK(result.output == "denied\ndenied\ndenied\ndenied\nnotes\ndenied\ndenied\ndenied\ndenied\nnotes\n2\n");
  CHECK(get(real + "/granted/file") == "y\n");
  CHECK_FALSE(isThere(real + "/new"));
}

TEST_CASE("A8 Open Conduit's own is out of reach wherever XDG_* has moved it, beneath what is granted as well") {
  SrtWorld world;
  auto moved = world.home("granted/deep");
  world.places.configDir = moved + "/config/open-conduit";
  world.places.stateDir = moved + "/state/open-conduit";
  world.places.dataDir = moved + "/data/open-conduit";
  world.place = {
      "w-1", "r-1", world.places.workspace("w-1"), world.places.runFiles("r-1"), world.places.runFiles("r-1") + "/tmp",
      "",    ""};
  for (auto& directory : {world.places.configDir, world.places.stateDir, world.place.tmp,
                          world.places.runPrivate("r-1"), world.place.workspace}) {
    makeDirectories(directory);
  }
  put(world.places.config(), "the config\n");
  put(world.places.operatorToken(), "the token\n");
  put(world.places.runFiles("r-2") + "/other", "another run's\n");
  SrtWorld::outside("git init -q -b main " + shellQuote(world.place.workspace));
  world.policy.write = {"~/granted"};
  auto output = world
                    .run(fmt::format(R"sh(
for path in {0} {1} {2}; do
  cat $path 2>/dev/null; (echo evil >$path) 2>/dev/null; rm -f $path; mv "$(dirname $path)" {3}/aside
done 2>/dev/null
echo x >{3}/free; echo y >here; cat here
)sh",
                                     world.places.config(), world.places.operatorToken(),
                                     world.places.runFiles("r-2") + "/other", world.home("granted")))
                    .output;
  CHECK(output == "y\n");
  CHECK(get(world.places.config()) == "the config\n");
  CHECK(get(world.places.operatorToken()) == "the token\n");
  CHECK(get(world.places.runFiles("r-2") + "/other") == "another run's\n");
  CHECK(get(world.home("granted/free")) == "x\n");
}
