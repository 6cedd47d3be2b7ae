// Every check that the config's bindings need: by the daemon that runs, or by its one-shot mode where none does or a
// file is named. And attacks on a binding's sandbox, by the one-shot mode alone, since what they answer comes out of
// that sandbox.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/json.h"
#include "base/spawn.h"
#include "cli/client.h"
#include "cli/failure.h"
#include "cli/ui/table.h"
#include "cli/ui/views.h"
#include "commands.h"
#include "daemon/config/load.h"

namespace oc::cli {

namespace {

using Checks = std::vector<CheckLine>;

Checks askDaemon(World& world, Link link) {
  auto answer = askPatiently(world, link.control.doctorRequest().send());
  Checks checks;
  for (auto check : answer.getChecks()) {
    checks.push_back(
        {toString(check.getName()), toString(check.getLevel()), toString(check.getWhat()), toString(check.getFix())});
  }
  return checks;
}

std::vector<std::pair<std::string, std::string>> ownEnvironment() {
  std::vector<std::pair<std::string, std::string>> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals != std::string_view::npos) result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

std::string absolute(const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  char* directory = get_current_dir_name();
  KJ_REQUIRE(directory != nullptr, "the working directory is not known");
  KJ_DEFER(free(directory));
  return fmt::format("{}/{}", directory, path);
}

struct Printed {
  std::string text;
  int exitCode;
};

// What a daemon would find, from a process like it: the same program, with our environment.
Printed runOneShot(const World& world, const std::string& configFile, const std::vector<std::string>& words) {
  constexpr size_t mostOutput = 1u << 20;
  auto pipe = makePipe();
  SpawnSpec spec;
  spec.program = world.programs + "/open-conduitd";
  if (!configFile.empty()) spec.arguments = {"--config", absolute(configFile)};
  spec.arguments.insert(spec.arguments.end(), {"doctor", "--json"});
  spec.arguments.insert(spec.arguments.end(), words.begin(), words.end());
  spec.environment = ownEnvironment();
  spec.descriptors = {{pipe.second.get(), STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}};
  spec.newSession = false;  // Ctrl-C is for both
  spec.noNewPrivs = false;  // as a daemon is started
  auto spawned = spawn(spec);
  pipe.second = nullptr;
  Printed printed{readAll(pipe.first.get(), mostOutput), 0};
  int status;
  KJ_SYSCALL(waitpid(spawned.pid, &status, 0));
  printed.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return printed;
}

std::string textOf(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_string() ? object[name].get<std::string>() : "";
}

Checks parseChecks(const Printed& printed) {
  Failure broken{No,
                 {"doctor_failed", fmt::format("open-conduitd doctor ended with {} and no report", printed.exitCode),
                  "see what it printed"}};
  auto report = parseJson(printed.text);
  if (!report.is_object() || !report.contains("checks") || !report["checks"].is_array()) throw broken;
  Checks checks;
  for (auto& check : report["checks"]) {
    if (!check.is_object()) throw broken;
    checks.push_back({textOf(check, "name"), textOf(check, "level"), textOf(check, "what"), textOf(check, "fix")});
  }
  return checks;
}

// Nothing when the config has no errors. With any, no daemon would start, and no other check has bindings to look at.
std::optional<CheckLine> checkConfig(const std::string& path, const Places& places) {
  auto loaded = config::loadFile(path, config::environmentOf(places.home));
  if (!loaded.hasErrors()) return std::nullopt;
  std::string all;
  for (auto& diagnostic : loaded.diagnostics) all += config::render(diagnostic, path) + "\n";
  return CheckLine{"config", "FAIL", all, "mend the file, then look again: open-conduit config check"};
}

Checks checkWithoutDaemon(World& world, const std::string& configFile) {
  auto problem = checkConfig(configFile.empty() ? world.places.config() : configFile, world.places);
  if (problem) return {*problem};
  return parseChecks(runOneShot(world, configFile, {}));
}

// A daemon that runs has read a config of its own: asked about a file, it has no answer.
Checks collect(World& world, const std::string& configFile) {
  try {
    auto link = world.connect();
    return configFile.empty() ? askDaemon(world, kj::mv(link)) : checkWithoutDaemon(world, configFile);
  } catch (const Failure& failure) {
    if (failure.code != NoDaemon) throw;
    auto checks = checkWithoutDaemon(world, configFile);
    checks.push_back({"daemon", "warn", failure.why.what, failure.why.fix});
    return checks;
  }
}

// ---- attacks

struct Attack {
  std::string against, name, outside, inside, verdict;
};

// Throws what the one-shot refused the attacks for.
std::vector<Attack> parseAttacks(const Printed& printed, Json& report) {
  report = parseJson(printed.text);
  if (report.is_object() && report.contains("refusal")) {
    auto& why = report["refusal"];
    throw Failure{No, {textOf(why, "reason"), textOf(why, "what"), textOf(why, "fix")}};
  }
  if (!report.is_object() || !report.contains("attacks") || !report["attacks"].is_array()) {
    throw Failure{
        No,
        {"doctor_failed", fmt::format("open-conduitd doctor ended with {} and tried no attack", printed.exitCode),
         "see what it printed"}};
  }
  std::vector<Attack> attacks;
  for (auto& one : report["attacks"]) {
    attacks.push_back({textOf(one, "against"), textOf(one, "attack"), textOf(one, "outside"), textOf(one, "inside"),
                       textOf(one, "verdict")});
  }
  return attacks;
}

std::string attacksView(const Look& look, const std::vector<Attack>& attacks) {
  Table table({"VERDICT", "ABOUT", "ATTACK", "OUTSIDE", "IN THE SANDBOX"});
  std::map<std::string, size_t> counts;
  for (auto& one : attacks) {
    ++counts[one.verdict];
    auto tint = one.verdict == "held"                                 ? Tint::Good
                : one.verdict == "granted"                            ? Tint::Caution
                : one.verdict == "THROUGH" || one.verdict == "FAILED" ? Tint::Bad
                                                                      : Tint::Dim;
    table.add({Cell(one.verdict, tint), one.against, one.name, one.outside, one.inside});
  }
  std::string sum;
  for (auto& [verdict, count] : counts) sum += (sum.empty() ? "" : ", ") + fmt::format("{} {}", count, verdict);
  return table.render(look) + "\n" + fmt::format("{} attacks: {}\n", attacks.size(), sum);
}

int attack(World& world, const Choice& choice, const std::string& binding) {
  auto printed = runOneShot(world, choice.configFile, {"--attack", binding});
  Json report;
  auto attacks = parseAttacks(printed, report);
  bool ok = printed.exitCode == 0;
  if (!choice.json) {
    world.out(attacksView(world.look, attacks));
    return ok ? Done : No;
  }
  auto documents = Document::array();
  for (auto& one : attacks) {
    documents.push_back({{"against", one.against},
                         {"attack", one.name},
                         {"outside", one.outside},
                         {"inside", one.inside},
                         {"verdict", one.verdict}});
  }
  print(world, {{"ok", ok}, {"binding", binding}, {"attacks", documents}});
  return ok ? Done : No;
}

int doctor(World& world, const Choice& choice) {
  auto checks = collect(world, choice.configFile);
  bool ok = std::none_of(checks.begin(), checks.end(), [](auto& check) { return check.level == "FAIL"; });
  if (choice.json) {
    auto documents = Document::array();
    for (auto& check : checks) documents.push_back(checkDocument(check.name, check.level, check.what, check.fix));
    print(world, {{"ok", ok}, {"checks", documents}});
  } else {
    world.out(checksView(world.look, checks));
  }
  return ok ? Done : No;
}

}  // namespace

void addDoctor(Command& all, Choice& choice) {
  auto binding = std::make_shared<std::string>();
  all.command("doctor", "Every check that the config's bindings need, and the fix of each that fails",
              [&choice, binding](World& world) {
                return binding->empty() ? doctor(world, choice) : attack(world, choice, *binding);
              })
      .option("--attack", *binding, "Instead: try every known attack in this binding's sandbox, and say what held",
              "SCOPE/BINDING");
}

}  // namespace oc::cli
