// Policies whose paths are written or lie in other ways than one would think of, with the real srt.
#include <unistd.h>

#include "srt_world.h"

using namespace oc;
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
