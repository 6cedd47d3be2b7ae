// The daemon's own life: starting it, emptying it, telling it to read its config again.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/client.h"
#include "cli/failure.h"
#include "cli/program.h"
#include "cli/ui/views.h"
#include "commands.h"

namespace oc::cli {

namespace {

// Becomes open-conduitd, in the foreground: what it prints and how it ends is the caller's to see.
[[noreturn]] void becomeDaemon(const World& world, const std::string& configFile, bool allowRoot) {
  auto program = world.programs + "/open-conduitd";
  std::vector<std::string> words = {"open-conduitd"};
  if (!configFile.empty()) words.insert(words.end(), {"--config", configFile});
  if (allowRoot) words.push_back("--allow-root");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw Failure{No,
                {"program_missing", fmt::format("{}: {}", program, strerror(errno)),
                 "install open-conduitd beside open-conduit"}};
}

int drain(World& world, bool stop, bool json) {
  auto link = world.connect();
  auto live = ask(world, link.control.statusRequest().send()).getStatus().getLiveRuns().size();
  if (!json && live > 0) {
    world.err(fmt::format("{} {} {}; no new ones begin (Ctrl-C stops the waiting, not the drain)\n",
                          stop ? "stopping" : "waiting for", live, live == 1 ? "run" : "runs"));
  }
  auto request = link.control.drainRequest();
  request.setStop(stop);
  auto answer = askUntilInterrupted(world, request.send());
  bool drained = answer != nullptr;
  if (json) print(world, {{"drained", drained}});
  if (!drained) {
    if (!json) world.err("the daemon goes on draining\n");
    return interruptedCode;
  }
  if (!json) world.out("no run is left, and no new one begins until the daemon is started again\n");
  return Done;
}

int reload(World& world, bool json) {
  auto link = world.connect();
  auto answer = ask(world, link.control.reloadRequest().send());
  auto diagnostics = toString(answer.getDiagnostics());
  if (json) {
    print(world, {{"reloaded", diagnostics.empty()}, {"diagnostics", textOrNull(diagnostics)}});
    return diagnostics.empty() ? Done : No;
  }
  if (diagnostics.empty()) {
    world.out("the config is in force from the next run on\n");
    return Done;
  }
  throw Failure{No, {"failed", "the config in force stays as it was:\n" + diagnostics, "open-conduit config check"}};
}

}  // namespace

void addDaemon(Command& all, Choice& choice) {
  auto allowRoot = std::make_shared<bool>(false);
  all.commandWithoutJson(
         "daemon", "The daemon, in the foreground",
         [&choice, allowRoot](World& world) -> int { becomeDaemon(world, choice.configFile, *allowRoot); })
      .flag("--allow-root", *allowRoot, "Start as root, too");

  auto stop = std::make_shared<bool>(false);
  all.command("drain", "Begin no new runs, and wait for the live ones",
              [&choice, stop](World& world) { return drain(world, *stop, choice.json); })
      .flag("--stop", *stop, "Stop the live ones");
  all.command("reload", "Have the daemon read its config again",
              [&choice](World& world) { return reload(world, choice.json); });
}

}  // namespace oc::cli
