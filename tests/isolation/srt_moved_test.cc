// Open Conduit's own directories where a policy lets a run write: XDG_* moved beneath a granted folder. They stay out
// of reach, and the run goes on.
#include "srt_world.h"

using namespace oc;
using oc::test::get;
using oc::test::isThere;
using oc::test::put;
using oc::test::SrtWorld;

namespace {

using Member = std::string Places::*;

struct Moved {
  const char* what;
  std::vector<Member> places;  // moved to ~/granted, each to a folder of its own
  const char* write;
};

std::string nameOf(Member member) {
  if (member == &Places::configDir) return "config";
  if (member == &Places::stateDir) return "state";
  return member == &Places::dataDir ? "data" : "runtime";
}

// Everything that an agent could do to a file of ours and to the folders above it, up to the granted one. What it does
// to the empty file systems that lie over ours is its own affair.
constexpr auto attack = R"sh(
cd "$HOME/granted" || exit 1
for secret in "$@"; do
  cat "$secret" && echo "read $secret"
  echo evil > "$secret"; chmod 777 "${secret%/*}"; ln "$secret" stolen && echo "linked $secret"; rm -rf "$secret"
  above=${secret%%/open-conduit/*}/open-conduit
  while [ "$above" != "$HOME/granted" ] && [ "$above" != "$HOME" ] && [ ${#above} -gt 6 ]; do
    mv "$above" "$above-aside"
    mv -T planted "$above"
    echo evil > "$above/planted"
    above=${above%/*}
  done
done 2>/dev/null
cat neighbour; echo written > neighbour
)sh";

}  // namespace

TEST_CASE("A8 C1 Open Conduit's own directories beneath a granted folder are hidden, and the run goes on") {
  constexpr Member config = &Places::configDir, state = &Places::stateDir, data = &Places::dataDir,
                   runtime = &Places::runtimeDir;
  auto moved = GENERATE_COPY(values<Moved>({{"the state", {state}, "~/granted"},
                                            {"the state, granted by its folder", {state}, "~/granted/state"},
                                            {"the config", {config}, "~/granted"},
                                            {"the data", {data}, "~/granted"},
                                            {"the runtime directory", {runtime}, "~/granted"},
                                            {"all of them", {config, state, data, runtime}, "~/granted"},
                                            {"all of them, in a home that is granted", {config, state, data}, "~"}}));
  bool allSockets = GENERATE(false, true);
  INFO(moved.what << (allSockets ? ", with all sockets" : ""));
  SrtWorld world([&moved](SrtWorld& world) {
    for (auto member : moved.places) world.places.*member = world.home("granted/" + nameOf(member) + "/open-conduit");
  });
  world.environ["XDG_RUNTIME_DIR"] = world.places.runtimeDir.substr(0, world.places.runtimeDir.rfind('/'));
  std::vector<std::string> secrets = {world.places.operatorToken(), world.places.config(),
                                      world.places.runFiles("r-2") + "/other", world.places.runtimeDir + "/control"};
  for (auto& secret : secrets) put(secret, "secret\n");
  put(world.home("granted/neighbour"), "neighbour\n");
  makeDirectories(world.home("granted/planted"));
  // A place that cannot be looked at, as those of other users' services are. What srt knows of the rest is less then.
  makeDirectories(world.home("closed/place"));
  REQUIRE(chmod(world.home("closed").c_str(), 0) == 0);
  KJ_DEFER(chmod(world.home("closed").c_str(), 0700));
  world.policy.readDeny = {"~/closed/place"};
  world.policy.write = {"{workspace}", moved.write};
  world.policy.allUnixSockets = allSockets;
  std::string words;
  for (auto& secret : secrets) words += " " + shellQuote(secret);
  auto result = world.run("set --" + words + "\n" + attack +
                          "echo two > \"$OLDPWD/file\"; cd \"$OLDPWD\"; git commit -qam second && echo committed");
  INFO(result.errors);
  CHECK(result.output == "neighbour\ncommitted\n");
  for (auto& secret : secrets) {
    CHECK(get(secret) == "secret\n");
    CHECK_FALSE(isThere(secret.substr(0, secret.rfind('/')) + "/planted"));
  }
  bool inGrant = std::string(moved.write) != "~/granted/state";
  CHECK(get(world.home("granted/neighbour")) == (inGrant ? "written\n" : "neighbour\n"));
}

TEST_CASE("A8 control: the same attack gets through where Open Conduit's own is not hidden") {
  SrtWorld world([](SrtWorld& world) { world.places.configDir = world.home("granted/config/open-conduit"); });
  put(world.places.config(), "secret\n");
  put(world.home("granted/neighbour"), "neighbour\n");
  makeDirectories(world.home("granted/planted"));
  world.policy.write = {"{workspace}", "~/granted"};
  auto own = world.places.configDir;
  world.adjust = [&own](sandbox::SrtSettings& settings) {
    settings.hidden.erase(std::remove(settings.hidden.begin(), settings.hidden.end(), own), settings.hidden.end());
    auto& denied = settings.settings["filesystem"]["denyRead"];
    denied.erase(std::remove(denied.begin(), denied.end(), own), denied.end());
  };
  auto output = world.run("set -- " + shellQuote(world.places.config()) + "\n" + attack).output;
  CHECK(output.find("read " + world.places.config() + "\n") != std::string::npos);
  CHECK_FALSE(isThere(world.places.config()));
  CHECK(isThere(world.home("granted/config-aside/open-conduit/planted")));
}
