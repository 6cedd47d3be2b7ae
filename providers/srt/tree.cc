#include "tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/bound_sockets.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/text.h"
#include "canary.h"
#include "denial_pipe.h"
#include "hidden_watch.h"
#include "launch.h"
#include "machine.h"
#include "placeholders.h"
#include "processes.h"
#include "providers/kit/reaper.h"
#include "script.h"
#include "start_bell.h"
#include "settings.h"

namespace oc::srt {

namespace {

class SrtTree final : public kit::AgentTree {
 public:
  SrtTree(Job job, kit::Context& context)
      : job(kj::mv(job)), context(context), timer(context.io.provider->getTimer()), reaper(context.io.unixEventPort) {}

  std::optional<Refusal> start(const kit::AgentCommand& command) override {
    if (auto refusal = refuseMachine(context.protections)) return refusal;
    if (auto refusal = checkCommand(command)) return refusal;
    struct stat stats;
    if (stat(command.directory.c_str(), &stats) < 0 || !S_ISDIR(stats.st_mode)) {
      return Refusal{"sandbox_unavailable", fmt::format("there is no directory {}", printable(command.directory)), ""};
    }
    auto settings = readSettings(job.settings);
    placeholders = Placeholders(settings);
    bell = kj::heap<StartBell>(context.io.unixEventPort, job.scratch + "/started");
    script = job.scratch + "/agent";
    writeScript(script, bell->ring() + agentScript(command, namesOf(srtEnvironment(job))));
    end = attempt(1);
    whenStarted = bell->whenRung().then([this]() { closeAgentDescriptors(); }).eagerlyEvaluate(nullptr);
    auto broken = [](const std::string& why) {
      logError("the run is ended: {}", why);
      killAll();
    };
    auto newSockets = [this, all = settings.allUnixSockets]() {
      return all ? socketsToHide() : std::vector<std::string>();
    };
    watch = kj::heap<HiddenWatch>(context.io, settings.denyRead, kj::mv(newSockets), kj::mv(broken));
    return std::nullopt;
  }

  kj::Promise<ProcessEnd> ended() override { return kj::mv(end); }

  void terminate() override {
    // srt answers SIGTERM by ending bubblewrap, and that kills the agent without asking it. So the agent is asked.
    auto agents = agentProcesses();
    if (agents.empty()) agents.push_back(srt.pid);
    stopping = true;
    for (pid_t pid : agents) ::kill(pid, SIGTERM);
  }

  kit::DenialList* denials() override { return &denialList; }

  kj::Promise<void> kill() override {
    stopping = true;
    return killUntilNoneIsLeft();
  }

  void cleanUp() override {
    watch = nullptr;
    if (placeholders) placeholders->remove();
  }

  kj::Promise<std::vector<kit::Check>> check() override { return runChecks(job, context, reaper); }

 private:
  // Of sockets that are bound by now, those that lead out; the policy's own stay.
  std::vector<std::string> socketsToHide() const {
    std::vector<std::string> places, bound;
    // A list that is too long to be read is no reason to end a run.
    auto failed = kj::runCatchingExceptions([&bound]() { bound = boundSockets(); });
    if (failed != nullptr) logDebug("the machine's sockets cannot be looked through");
    for (auto& socket : bound) {
      auto place = placeOfSocketThatLeadsOut(socket);
      bool lifted = std::any_of(job.sockets.begin(), job.sockets.end(),
                                [&place](auto& path) { return isAtOrUnder(path, place); });
      if (!place.empty() && !lifted) places.push_back(place);
    }
    return places;
  }

  // srt gives its own start-up a second for the search of bash and ripgrep, and gives up on a machine that is too busy
  // for that. Nothing of the agent has run then, so it is tried again, with pauses of 0.5, 1, 2 and 4 seconds in
  // between.
  static constexpr unsigned maxAttempts = 5;

  kj::Promise<ProcessEnd> attempt(unsigned number) {
    denialPipe = kj::heap<DenialPipe>(context.io.unixEventPort, denialList);
    srt = startSrt(job, job.settings, script, kit::agentInput, kit::agentOutput, kit::agentErrors,
                   denialPipe->forSrt().get());
    return reaper.whenEnded(srt.pid).then([this, number](ProcessEnd end) -> kj::Promise<ProcessEnd> {
      denialPipe->readWhatIsThere();
      bool failed = !bell->hasRung() && !stopping && end.known && !end.signaled && end.code != 0;
      if (failed && number < maxAttempts) {
        logWarning("srt ended before it had started the agent; it is tried again");
        auto pause = (250 << number) * kj::MILLISECONDS;
        return killUntilNoneIsLeft()
            .then([this, pause]() { return timer.afterDelay(pause); })
            .then([this, number, end]() -> kj::Promise<ProcessEnd> {
              if (stopping) return end;
              return attempt(number + 1);
            });
      }
      closeAgentDescriptors();
      return end;
    });
  }

  // Ours would keep the shim from seeing the end of the agent's output.
  void closeAgentDescriptors() {
    if (agentDescriptorsClosed) return;
    agentDescriptorsClosed = true;
    for (int fd : {kit::agentInput, kit::agentOutput, kit::agentErrors}) close(fd);
  }

  kj::Promise<void> killUntilNoneIsLeft() {
    killAll();
    return reaper.whenChildless([]() { killAll(); }).exclusiveJoin(keepKilling());
  }

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
  kj::Own<StartBell> bell;
  kit::DenialList denialList;
  kj::Own<DenialPipe> denialPipe;
  std::string script;
  Spawned srt{0, nullptr};
  bool stopping = false, agentDescriptorsClosed = false;
  kj::Promise<void> whenStarted = nullptr;
  kj::Promise<ProcessEnd> end = nullptr;
};

}  // namespace

kj::Own<kit::AgentTree> makeTree(Job job, kit::Context& context) { return kj::heap<SrtTree>(kj::mv(job), context); }

}  // namespace oc::srt
