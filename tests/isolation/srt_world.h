// A home, a workspace that is a git clone, and the real srt: what a run of a sandboxed binding has, without a daemon.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "daemon/sandbox/srt_settings.h"
#include "tests/agent_instance.h"
#include "tests/catch.h"
#include "tests/ordinary_user.h"

namespace oc::test {

// Where the real srt is: OPEN_CONDUIT_TEST_SRT (a folder that npm installed it into), else where a daemon looks.
inline sandbox::SrtParts findRealSrt() {
  config::ExtensionSettings settings;
  if (auto folder = getenv("OPEN_CONDUIT_TEST_SRT")) settings.package = folder;
  auto found = sandbox::findSrt(settings, findPlaces());
  if (!found) FAIL("these tests need srt: " + found.refusal().what + "; OPEN_CONDUIT_TEST_SRT may name its folder");
  return found.value();
}

inline void put(const std::string& path, const std::string& text) {
  makeDirectories(path.substr(0, path.rfind('/')));
  writeFileAtomically(path, text);
}

inline std::string get(const std::string& path) {
  struct stat stats;
  return stat(path.c_str(), &stats) == 0 ? readFile(path, 1 << 20) : "(not there)";
}

inline bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}

class SrtWorld {
 public:
  // `arrange` may move places before they are made.
  explicit SrtWorld(const std::function<void(SrtWorld&)>& arrange = nullptr) {
    becomeOrdinaryUser();
    char path[] = "/tmp/oc-srt-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root = path;
    parts = findRealSrt();
    places = {root + "/home", root + "/home/.config/open-conduit", root + "/home/.local/state/open-conduit",
              root + "/home/.local/share/open-conduit", root + "/run/open-conduit"};
    if (arrange) arrange(*this);
    place = {"w-1", "r-1", places.workspace("w-1"), places.runFiles("r-1"), places.runFiles("r-1") + "/tmp", "", {}};
    for (auto& directory :
         {places.configDir, places.stateDir, places.runtimeDir, place.workspace, place.tmp, places.runPrivate("r-1")}) {
      makeDirectories(directory);
    }
    put(places.config(), "the config\n");
    put(places.operatorToken(), "the token\n");
    environ = {{"XDG_RUNTIME_DIR", root + "/run"}};
    environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                   {"HOME", places.home},
                   {"GIT_AUTHOR_NAME", "Agent"},
                   {"GIT_AUTHOR_EMAIL", "agent@example.org"},
                   {"GIT_COMMITTER_NAME", "Agent"},
                   {"GIT_COMMITTER_EMAIL", "agent@example.org"}};
    policy.write = {"{workspace}"};
    outside("git init -q -b main " + shellQuote(place.workspace) + " && cd " + shellQuote(place.workspace) +
            " && echo one > file && git add file && git -c user.name=o -c user.email=o@example.org commit -qm first");
  }
  ~SrtWorld() {
    instance = nullptr;
    removeTree(root);
  }

  std::string home(const std::string& name) const { return places.home + "/" + name; }

  // On the operator's side of the wall.
  static void outside(const std::string& script) { REQUIRE(system(script.c_str()) == 0); }

  // An instance for the policy as it is now.
  AgentInstance& start(std::vector<std::pair<int, int>> extra = {}) {
    auto made = sandbox::makeSrtSettings(policy, parts, places, place, environ);
    if (!made) FAIL(made.refusal().reason + ": " + made.refusal().what);
    auto settings = std::move(made).value();
    if (adjust) adjust(settings);
    writeFileAtomically(settings.settingsFile, canonicalJson(settings.settings));
    std::vector<std::string> words;
    for (auto& path : settings.hidden) words.insert(words.end(), {"--hide", path});
    for (auto& path : settings.kept) words.insert(words.end(), {"--keep", path});
    words.push_back("--");
    for (auto& word : sandbox::srtJob(parts, settings)) words.push_back(word);
    added = settings.environment;
    instance = nullptr;
    instance = kj::heap<AgentInstance>(io, "open-conduit-srt", words, true, std::move(extra));
    if (!instance->handshake.ready) FAIL("the instance did not start: " + instance->handshake.failure);
    return *instance;
  }

  Refusal launch(const std::string& script) { return launchCommand({"bash", "-c", script}); }
  Refusal launchCommand(const std::vector<std::string>& command) {
    auto all = environment;
    for (auto& [name, value] : added) all.emplace_back(name, value);
    return instance->launch(command, all, place.workspace);
  }

  // Runs bash's script under the policy, to its end.
  AgentEnd run(const std::string& script) {
    start();
    auto refusal = launch(script);
    if (!refusal.reason.empty()) FAIL(refusal.reason + ": " + refusal.what);
    auto result = instance->wait();
    CHECK(result.end.known);
    // Nothing of the script ran: srt says why.
    if (result.errors.starts_with("bwrap:") || result.errors.starts_with("Error:")) WARN(result.errors);
    return result;
  }

  // "yes" when the command succeeds inside, "no" when it does not.
  std::string tries(const std::string& command) {
    auto result = run("if " + command + " >/dev/null 2>&1; then echo yes; else echo no; fi");
    return result.output.substr(0, result.output.find('\n'));
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::string root;
  sandbox::SrtParts parts;
  Places places;
  sandbox::RunPlace place;
  std::map<std::string, std::string> environ, added;
  std::vector<std::pair<std::string, std::string>> environment;
  config::SrtPolicy policy;
  std::function<void(sandbox::SrtSettings&)> adjust;  // to show what happens without one of our measures
  kj::Own<AgentInstance> instance;
};

}  // namespace oc::test
