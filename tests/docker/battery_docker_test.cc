// The attack battery against a run's container, on a real engine: all of it holds, and each measure that is left out
// lets something through.
#include "tests/battery_world.h"

#include "base/crypto.h"
#include "base/host_pattern.h"
#include "base/json.h"

using namespace oc;
using namespace oc::test;

namespace {

HostPattern host(const std::string& text) {
  std::string why;
  auto pattern = parseHostPattern(text, why);
  REQUIRE(pattern);
  return *pattern;
}

std::string variable(const char* name) {
  auto value = getenv(name);
  return value == nullptr ? "" : value;
}

void useContainer(BatteryWorld& world) {
  auto folder = world.root + "/docker/contexts/meta/" + sha256Hex("test");
  makeDirectories(folder);
  Json context = {
      {"Name", "test"},
      {"Metadata", Json::object()},
      {"Endpoints",
       {{"docker", {{"Host", "unix://" + variable("OPEN_CONDUIT_TEST_ENGINE")}, {"SkipTLSVerify", false}}}}}};
  writeFileAtomically(folder + "/meta.json", context.dump());
  config::ContainerPolicy policy;
  policy.image = variable("OPEN_CONDUIT_TEST_DEBIAN_IMAGE");
  policy.write = {"{workspace}"};
  policy.networkAllow = {host("allowed.example.org")};
  policy.context = "test";
  policy.memory = "128m";
  policy.pids = 64;
  world.binding.container = policy;
}

// A change of the request that the engine gets for the agent's container.
Measure without(const std::string& name, const Json& hostConfig) {
  return {name, nullptr, Json({{"HostConfig", hostConfig}}).dump()};
}

std::vector<Measure> measures(BatteryWorld& world) {
  auto& places = world.places;
  auto drop = [](work::Plan& plan, const std::string& part) {
    std::erase_if(plan.container.settings.mounts,
                  [&](auto& mount) { return !mount.writable && mount.target.find(part) != std::string::npos; });
  };
  return {
      without("network none", {{"NetworkMode", "host"}}),
      without("an IPC namespace of its own", {{"IpcMode", "host"}}),
      without("Docker's seccomp profile", {{"SecurityOpt", {"no-new-privileges=true", "seccomp=unconfined"}}}),
      {"the limit of processes", [](work::Plan& plan) { plan.container.settings.pids = 0; },
       R"({"HostConfig": {"PidsLimit": 0}})"},
      without("the limit of memory", {{"Memory", 0}, {"MemorySwap", 0}}),
      {"git's files read-only", [drop](work::Plan& plan) { drop(plan, "/.git/"); }},
      {"the removal of .git/commondir", nullptr, "", true},
      {"the bound of what is mounted",
       [&places](work::Plan& plan) {
         struct stat stats;
         REQUIRE(stat(places.home.c_str(), &stats) == 0);
         plan.container.settings.mounts.push_back({places.home, places.home, true, stats.st_dev, stats.st_ino, ""});
       }},
      {"the refusal of the machine's own addresses",
       [](work::Plan& plan) {
         auto& settings = plan.container.settings;
         for (auto& address : settings.refusedAddresses) {
           std::string why;
           if (auto pattern = parseHostPattern(address, why)) settings.allow.push_back(*pattern);
         }
         settings.refusedAddresses.clear();
       }},
  };
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (auto& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

}  // namespace

TEST_CASE(
    "B2 B4 B7 C7 A8 every attack of the battery is held by a run's container, and none by one that lacks its measure") {
  BatteryWorld world;
  useContainer(world);
  auto whole = world.attack();
  requireHeld(whole);
  CHECK(whole.count(Verdict::Held) >= 100);
  CHECK(namesOf(whole, Verdict::Granted).empty());

  Removals removals;
  removeEach(world, whole, measures(world), removals);
  std::string table = row({"attack", "container", "gets through without"}) + row({"---", "---", "---"});
  for (auto& each : whole.rows) {
    std::string names;
    for (auto& name : removals[each.name]) names += (names.empty() ? "" : ", or ") + name;
    table += row({each.name, shownAnswer(each), names});
  }
  compareWithPage("container", table);
}
