// All attacks against a binding's sandbox, as `open-conduit doctor --attack` carries them out, and with one of its
// measures less.
#pragma once

#include <fmt/format.h>
#include <kj/async-io.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "daemon/attack/battery.h"
#include "tests/catch.h"
#include "tests/ordinary_user.h"

namespace oc::test {

using attack::Report;
using attack::Row;
using Verdict = attack::Row::Verdict;
using Names = std::set<std::string>;

// A measure, and how a run comes to lack it.
struct Measure {
  std::string name;
  std::function<void(work::Plan&)> change = nullptr;  // of the plan
  std::string order = "";                             // for the weakened provider
  bool keepRedirection = false;
  bool showOwn = false;  // Open Conduit's directories are there for the provider's instance
};

class BatteryWorld {
 public:
  BatteryWorld() {
    becomeOrdinaryUser();
    char path[] = "/tmp/oc-bat-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root = path;
    places = {root + "/home", root + "/config/oc", root + "/state/oc", root + "/data/oc", root + "/run/oc"};
    for (auto& directory : {places.home + "/.ssh", places.configDir, places.stateDir, places.dataDir, places.runtimeDir,
                            root + "/programs", root + "/docker"}) {
      makeDirectories(directory);
    }
    writeFileAtomically(places.home + "/.ssh/id_ed25519", "key\n");
    own = {{"XDG_RUNTIME_DIR", root + "/run"}, {"HOME", places.home}, {"DOCKER_CONFIG", root + "/docker"}};
    if (auto image = getenv("OPEN_CONDUIT_GATEWAY_IMAGE")) own["OPEN_CONDUIT_GATEWAY_IMAGE"] = image;
    for (auto name : {"attack", "run", "srt", "docker"}) link(name, name);
    // A container's engine may have another view of the folder that they are in.
    copy("open-conduit-toolbelt", "open-conduit-toolbelt");
    binding.scope = "test";
    binding.name = "binding";
    if (auto folder = getenv("OPEN_CONDUIT_TEST_SRT")) config.settings.extensions["srt"].package = folder;
    config.settings.extensions["docker"].passEnv = {"DOCKER_CONFIG"};
  }
  ~BatteryWorld() { removeTree(root); }

  // As it is, or without a measure.
  Report attack(const Measure& without = {}) {
    if (!without.order.empty()) {
      auto provider = binding.container ? "docker" : "srt";
      unlink((root + "/programs/open-conduit-" + provider).c_str());
      copy(std::string("tests/weakened-") + provider, std::string("open-conduit-") + provider);
      writeFileAtomically(root + "/programs/weakened", without.order);
    }
    auto report = attackOnce(without);
    if (!without.order.empty()) {
      auto provider = binding.container ? "docker" : "srt";
      unlink((root + "/programs/open-conduit-" + provider).c_str());
      link(provider, provider);
    }
    return report;
  }

  config::Config& configured() {
    config.scopes.clear();
    config::Scope scope;
    scope.id = scope.name = binding.scope;
    scope.bindings = {binding};
    config.scopes.push_back(scope);
    return config;
  }

  std::string root;
  Places places;
  work::Environment own;
  config::Config config;
  config::Binding binding;

 private:
  static std::string built(const std::string& name) {
    return std::string(getenv("OPEN_CONDUIT_PROGRAMS")) + "/" + name;
  }
  void link(const std::string& provider, const std::string& name) {
    REQUIRE(symlink(built("open-conduit-" + provider).c_str(), (root + "/programs/open-conduit-" + name).c_str()) == 0);
  }
  void copy(const std::string& from, const std::string& to) {
    std::filesystem::copy_file(built(from), root + "/programs/" + to);
  }

  Report attackOnce(const Measure& without) {
    auto io = kj::setupAsyncIo();
    supervisor::Supervisor supervisor(io, root + "/programs");
    if (!without.showOwn)
      supervisor.setHidden({places.stateDir, places.configDir, places.runtimeDir, places.worksDir(), places.runsDir()});
    work::Containers containers(supervisor, places, own, root + "/programs");
    auto& all = configured();
    auto report = attack::runBattery({all, *all.findBinding(binding.id()), places, supervisor, containers, own,
                                      without.change, without.keepRedirection})
                      .wait(io.waitScope);
    if (!report.ok()) FAIL(report.refusal().reason << ": " << report.refusal().what);
    return report.value();
  }
};

inline Names namesOf(const Report& report, Verdict verdict) {
  Names names;
  for (auto& row : report.rows) {
    if (row.verdict == verdict) names.insert(row.name);
  }
  return names;
}

inline void requireHeld(const Report& report) {
  for (auto& row : report.rows) {
    INFO(row.against << ": " << row.name << ": " << row.inside << " (outside: " << row.outside << ")");
    CHECK((row.verdict != Verdict::Through && row.verdict != Verdict::Failed));
  }
  CHECK(report.held());
}

// The attacks that a run without the measure no longer holds.
inline Names through(const Report& whole, const Report& weakened) {
  auto held = namesOf(whole, Verdict::Held);
  Names names;
  for (auto& row : weakened.rows) {
    bool passes = row.verdict == Verdict::Through || row.verdict == Verdict::Granted;
    if (passes && held.count(row.name) != 0) names.insert(row.name);
  }
  return names;
}

// By attack, the measures whose removal lets it through.
using Removals = std::map<std::string, std::vector<std::string>>;

inline void removeEach(BatteryWorld& world, const Report& whole, const std::vector<Measure>& measures,
                       Removals& removals) {
  for (auto& measure : measures) {
    auto names = through(whole, world.attack(measure));
    INFO("without " << measure.name);
    CHECK_FALSE(names.empty());
    for (auto& name : names) removals[name].push_back(measure.name);
  }
}

// docs/attacks.md has the table between two marks. With OPEN_CONDUIT_WRITE_REFERENCE=1 it is written there.
inline void compareWithPage(const std::string& mark, const std::string& table) {
  auto file =
      std::string(getenv("OPEN_CONDUIT_SOURCE") == nullptr ? "." : getenv("OPEN_CONDUIT_SOURCE")) + "/docs/attacks.md";
  auto page = readFile(file, 1 << 20);
  auto begin = "<!-- " + mark + " -->\n", end = std::string("<!-- end -->\n");
  auto from = page.find(begin);
  REQUIRE(from != std::string::npos);
  from += begin.size();
  auto to = page.find(end, from);
  REQUIRE(to != std::string::npos);
  if (getenv("OPEN_CONDUIT_WRITE_REFERENCE") != nullptr) {
    writeFileAtomically(file, page.substr(0, from) + table + page.substr(to), 0644);
    return;
  }
  CHECK(page.substr(from, to - from) == table);
}

// What an answer depends on the machine for (its kernel's settings, its devices) is no part of the page.
inline std::string shownAnswer(const Row& row) {
  switch (row.verdict) {
    case Verdict::Held: return row.inside == "held -" ? "nothing there" : row.inside.substr(5);
    case Verdict::Granted: return "granted";
    case Verdict::Absent: return "–";
    case Verdict::Unproven: return "not shown here";
    default: return "**" + row.inside + "**";
  }
}

}  // namespace oc::test
