// The attack battery against the process sandbox, with the real srt: all of it holds, and each measure that is left out
// lets something through.
#include "tests/battery_world.h"

#include "base/host_pattern.h"

using namespace oc;
using namespace oc::test;

namespace {

HostPattern host(const std::string& text) {
  std::string why;
  auto pattern = parseHostPattern(text, why);
  REQUIRE(pattern);
  return *pattern;
}

void useSrt(BatteryWorld& world, bool allSockets) {
  config::SrtPolicy policy;
  policy.write = {"{workspace}"};
  policy.allUnixSockets = allSockets;
  policy.networkAllow = {host("allowed.example.org")};
  world.binding.srt = policy;
}

void change(work::Plan& plan, const std::function<void(Json&)>& edit) {
  auto settings = parseJson(plan.settings);
  edit(settings);
  plan.settings = canonicalJson(settings);
  writeFileAtomically(plan.settingsFile, plan.settings, 0600);
}

// Without the entries of a list that have the text in them.
void drop(Json& list, const std::string& text) {
  auto kept = Json::array();
  for (auto& entry : list) {
    if (entry.dump().find(text) == std::string::npos) kept.push_back(entry);
  }
  list = kept;
}

Measure without(const std::string& name, const std::function<void(Json&)>& edit) {
  return {name, [edit](work::Plan& plan) { change(plan, edit); }};
}

// bubblewrap, with one of its words left out.
Measure withoutWord(BatteryWorld& world, const std::string& name, const std::string& word) {
  return {name, [&world, word](work::Plan& plan) {
            auto script = world.root + "/programs/bwrap" + word;
            writeFileAtomically(script,
                                "#!/bin/bash\nwords=()\nfor word in \"$@\"; do [ \"$word\" = " + word +
                                    " ] || words+=(\"$word\"); done\nexec /usr/bin/bwrap \"${words[@]}\"\n",
                                0700);
            change(plan, [&](Json& settings) { settings["bwrapPath"] = script; });
            for (auto& each : plan.job) {
              if (each.ends_with("/bwrap")) each = script;
            }
          }};
}

std::vector<Measure> measures(BatteryWorld& world) {
  auto& places = world.places;
  return {
      {"hiding Open Conduit's own directories",
       [&places](work::Plan& plan) {
         change(plan, [&](Json& settings) {
           for (auto& path : {places.stateDir, places.dataDir, places.configDir})
             drop(settings["filesystem"]["denyRead"], path);
         });
         plan.hidden.clear();
         plan.kept.clear();
       },
       "", false, true},
      without("denying credentials", [](Json& settings) { drop(settings["filesystem"]["denyRead"], "/.ssh"); }),
      without("the bound of writing",
              [&places](Json& settings) { settings["filesystem"]["allowWrite"].push_back(places.home); }),
      without("git's files read-only",
              [](Json& settings) {
                drop(settings["filesystem"]["denyWrite"], "/.git/");
                drop(settings["filesystem"]["allowWrite"], "/.git");
              }),
      without("network.allow",
              [](Json& settings) {
                for (auto name : {"127.0.0.1", "localhost"}) settings["network"]["allowedDomains"].push_back(name);
              }),
      withoutWord(world, "a network of its own", "--unshare-net"),
      {"the instance's IPC namespace", nullptr, "ipc namespace"},
      {"the instance's seccomp filter", nullptr, "seccomp"},
      {"the removal of .git/commondir", nullptr, "removal of commondir"},
  };
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (auto& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

}  // namespace

TEST_CASE(
    "C1 C2 C3 C7 A8 every attack of the battery is held by the process sandbox, and none by a sandbox that lacks its measure") {
  BatteryWorld world;
  useSrt(world, false);
  auto plain = world.attack();
  requireHeld(plain);
  CHECK(plain.count(Verdict::Held) >= 100);
  useSrt(world, true);
  auto sockets = world.attack();
  requireHeld(sockets);
  CHECK(sockets.count(Verdict::Held) >= 100);
  // What the policy opens is open, and nothing else.
  CHECK(namesOf(plain, Verdict::Granted) ==
        Names{"read a file of the operator", "speak into a named pipe of the operator"});
  CHECK(namesOf(sockets, Verdict::Granted) == Names{"read a file of the operator",
                                                    "speak into a named pipe of the operator",
                                                    "connect to a plain socket of the operator"});

  Removals removals;
  removeEach(world, sockets, measures(world), removals);
  removeEach(world, sockets,
             {without("hiding sockets",
                      [&world](Json& settings) { drop(settings["filesystem"]["denyRead"], world.root + "/run\""); })},
             removals);
  useSrt(world, false);
  removeEach(world, plain,
             {without("denying Unix sockets",
                      [&world](Json& settings) {
                        settings["network"]["allowAllUnixSockets"] = true;
                        drop(settings["filesystem"]["denyRead"], world.root + "/run\"");
                      })},
             removals);

  std::string table = row({"attack", "process sandbox", "with `unix_sockets: \"all\"`", "gets through without"}) +
                      row({"---", "---", "---", "---"});
  for (size_t i = 0; i < plain.rows.size(); ++i) {
    std::string names;
    for (auto& name : removals[plain.rows[i].name]) names += (names.empty() ? "" : ", or ") + name;
    table += row({plain.rows[i].name, shownAnswer(plain.rows[i]), shownAnswer(sockets.rows[i]), names});
  }
  compareWithPage("process sandbox", table);
}

TEST_CASE("C2 the strict mode holds the battery, reading included") {
  BatteryWorld world;
  useSrt(world, true);
  world.binding.srt->readOnly.emplace();
  auto report = world.attack();
  requireHeld(report);
  CHECK(namesOf(report, Verdict::Granted).empty());
}
