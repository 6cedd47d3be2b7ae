#include "tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "canary.h"
#include "hidden_watch.h"
#include "launch.h"
#include "machine.h"
#include "placeholders.h"
#include "processes.h"
#include "providers/kit/reaper.h"
#include "script.h"
#include "settings.h"

namespace oc::srt {

namespace {

class SrtTree final : public kit::AgentTree {
 public:
  SrtTree(Job job, kit::Context& context)
      : job(kj::mv(job)),
        context(context),
        timer(context.io.provider->getTimer()),
        reaper(context.io.unixEventPort) {}

  std::optional<Refusal> start(const kit::AgentCommand& command) override {
    if (auto refusal = refuseMachine(context.protections)) return refusal;
    if (auto refusal = checkCommand(command)) return refusal;
    struct stat stats;
    if (stat(command.directory.c_str(), &stats) < 0 || !S_ISDIR(stats.st_mode)) {
      return Refusal{"sandbox_unavailable", fmt::format("there is no directory {}", printable(command.directory)), ""};
    }
    auto settings = readSettings(job.settings);
    placeholders = Placeholders(settings);
    auto script = job.scratch + "/agent";
    writeScript(script, agentScript(command, namesOf(srtEnvironment(job))));
    srt = startSrt(job, job.settings, script, kit::agentInput, kit::agentOutput, kit::agentErrors);
    end = reaper.whenEnded(srt.pid);
    for (int fd : {kit::agentInput, kit::agentOutput, kit::agentErrors}) close(fd);
    watch = kj::heap<HiddenWatch>(context.io, settings.denyRead, [](const std::string& why) {
      logError("the run is ended: {}", why);
      killAll();
    });
    return std::nullopt;
  }

  kj::Promise<ProcessEnd> ended() override { return kj::mv(end); }

  void terminate() override {
    // srt answers SIGTERM by ending bubblewrap, and that kills the agent without asking it. So the agent is asked.
    auto agents = agentProcesses();
    if (agents.empty()) agents.push_back(srt.pid);
    for (pid_t pid : agents) ::kill(pid, SIGTERM);
  }

  kj::Promise<void> kill() override {
    killAll();
    return reaper.whenChildless([]() { killAll(); }).exclusiveJoin(keepKilling());
  }

  void cleanUp() override {
    watch = nullptr;
    if (placeholders) placeholders->remove();
  }

  kj::Promise<std::vector<kit::Check>> check() override { return runChecks(job, context, reaper); }

 private:
  // Everything in our pid namespace but us. Anywhere else it would be everything that the operator runs.
  static void killAll() {
    KJ_REQUIRE(getpid() == 1, "not the first process of a pid namespace");
    if (::kill(-1, SIGKILL) < 0 && errno != ESRCH) KJ_FAIL_SYSCALL("kill", errno);
  }

  kj::Promise<void> keepKilling() {
    return timer.afterDelay(50 * kj::MILLISECONDS).then([this]() {
      killAll();
      return keepKilling();
    });
  }

  static std::vector<std::string> namesOf(const std::vector<std::pair<std::string, std::string>>& environment) {
    std::vector<std::string> names;
    for (auto& [name, value] : environment) names.push_back(name);
    return names;
  }

  static void writeScript(const std::string& path, const std::string& text) {
    auto fd = openFile(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    writeAll(fd.get(), text);
  }

  Job job;
  kit::Context& context;
  kj::Timer& timer;
  kit::Reaper reaper;
  std::optional<Placeholders> placeholders;
  kj::Own<HiddenWatch> watch;
  Spawned srt{0, nullptr};
  kj::Promise<ProcessEnd> end = nullptr;
};

}  // namespace

kj::Own<kit::AgentTree> makeTree(Job job, kit::Context& context) { return kj::heap<SrtTree>(kj::mv(job), context); }

}  // namespace oc::srt
