// read.only: nothing is readable but what is listed. Each denial stands beside the same thing in the plain mode.
#include "srt_world.h"

using namespace oc;
using oc::test::get;
using oc::test::isThere;
using oc::test::put;
using oc::test::SrtWorld;

namespace {

void fillHome(SrtWorld& world) {
  put(world.home("notes"), "notes\n");
  put(world.home("listed/file"), "listed\n");
  put(world.home("listed.not/file"), "beside\n");
  put(world.home("granted/file"), "granted\n");
  put(world.home("one/file"), "one file\n");
  put(world.home("one/other"), "another\n");
  put(world.home("elsewhere/file"), "elsewhere\n");
  put(world.home(".netrc"), "password\n");
  put(world.home("code/.ssh/key"), "key\n");
  REQUIRE(symlink("elsewhere", world.home("link").c_str()) == 0);
}

constexpr auto showAll = R"sh(
cd "$HOME"
for f in notes listed/file listed.not/file granted/file one/file one/other elsewhere/file link/file .netrc; do
  printf '%s: ' $f; cat $f 2>/dev/null || echo denied
done
printf 'way round: '; cat "$HOME/listed/../notes" "/proc/self/root$HOME/notes" "/proc/self/cwd/notes" 2>/dev/null || echo denied
for f in /etc/fstab /etc/machine-id /var/lib/dpkg/status /sys/kernel; do test -r $f && echo "sees $f"; done
)sh";

bool has(const std::string& output, const std::string& line) { return output.find(line + "\n") != std::string::npos; }

}  // namespace

TEST_CASE("C2 read.only: what is listed can be read, and nothing else; the plain mode shows it") {
  SrtWorld world;
  fillHome(world);
  auto plain = world.run(showAll).output;
  for (auto line : {"notes: notes", "listed.not/file: beside", "one/other: another", "elsewhere/file: elsewhere",
                    "sees /sys/kernel", "sees /var/lib/dpkg/status"}) {
    INFO(plain);
    CHECK(has(plain, line));
  }
  world.policy.readOnly = {"~/listed", "~/one/file", "~/link"};
  world.policy.write = {"{workspace}", "~/granted"};
  auto strict = world.run(showAll).output;
  for (auto line : {"notes: denied", "listed/file: listed", "listed.not/file: denied", "granted/file: granted",
                    "one/file: one file", "one/other: denied", "elsewhere/file: elsewhere", "link/file: elsewhere",
                    ".netrc: denied", "way round: denied"}) {
    INFO(strict);
    CHECK(has(strict, line));
  }
  INFO(strict);
  CHECK(strict.find("sees ") == std::string::npos);
}

TEST_CASE("C2 read.only: work goes on: a shell, git, perl, names of users, certificates, the run's own places") {
  SrtWorld world;
  world.policy.readOnly.emplace();
  auto result = world.run(R"sh(
id -un >/dev/null && echo named
test -s /etc/ssl/certs/ca-certificates.crt && echo trusted
perl -e 'print "perl\n"'
echo x > "$TMPDIR/y" && cat "$TMPDIR/y"
echo two >> file && git commit -qam second && git log --format=%s | head -1
echo null > /dev/null && head -c 4 /dev/urandom | wc -c
test -d /proc/self && echo proc
)sh");
  INFO(result.errors);
  CHECK(result.output == "named\ntrusted\nperl\nx\nsecond\n4\nproc\n");
  CHECK(get(world.place.workspace + "/file") == "one\ntwo\n");
}

TEST_CASE("C1 C2 read.only: writes go where write says, and credentials stay denied beneath what is listed") {
  SrtWorld world;
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home("notes"), "notes\n");
  world.policy.readOnly = {"~"};
  auto output =
      world.run("cat ~/notes; cat ~/.ssh/id_ed25519 || echo denied; echo x > ~/new || echo unwritten; echo y > ~/notes")
          .output;
  CHECK(output == "notes\ndenied\nunwritten\n");
  CHECK(get(world.home("notes")) == "notes\n");
  CHECK_FALSE(isThere(world.home("new")));
  world.policy.readOnly = {"~/.ssh"};
  CHECK(world.tries("cat ~/.ssh/id_ed25519") == "yes");
  CHECK(world.tries("cat ~/notes") == "no");
  CHECK(world.tries("cat " + shellQuote(world.places.operatorToken())) == "no");
}

TEST_CASE("C2 read.only: what comes to be during the run is not seen") {
  SrtWorld world;
  world.policy.readOnly.emplace();
  world.start();
  REQUIRE(world.launch("echo up; read line; cat ~/.netrc ~/later 2>/dev/null || echo denied").reason.empty());
  REQUIRE(world.instance->waitForOutput("up"));
  put(world.home(".netrc"), "password\n");
  put(world.home("later"), "later\n");
  world.instance->agentInput->write("go\n", 3).wait(world.io.waitScope);
  CHECK(world.instance->wait().output == "up\ndenied\n");
}
