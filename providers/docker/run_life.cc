#include "run_life.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/rpc.h"
#include "refusals.h"

namespace oc::docker {

RunLife::RunLife(kit::Context& context, Job jobParam, kj::Array<kj::Own<kj::AsyncIoStream>> connections)
    : timer(context.io.provider->getTimer()),
      job(kj::mv(jobParam)),
      calls(kj::mv(connections[0])),
      waiting(kj::mv(connections[1])),
      spare(kj::mv(connections[4])),
      agentStream(kj::mv(connections[2])),
      gatewayStream(kj::mv(connections[3])),
      theCleaner(timer, calls, spare, job.context),
      tasks(*this) {
  // A start that is under way goes on: its agent may be there already. A shim that has not begun goes with the daemon,
  // and this with it.
  tasks.add(kj::mv(context.onDaemonGone).then([this]() {
    if (!starting) leave();
  }));
}

Step RunLife::create(RunSpec spec) {
  KJ_REQUIRE(containers == nullptr, "an instance makes one run's containers");
  if (spec.owner != job.owner || spec.run != job.run) {
    return std::optional<Refusal>(Refusal{"sandbox_denied", "this instance is for another run", ""});
  }
  prepared = spec.preparedGateway;
  Containers::Connections connections{calls, spare, &waiting, *agentStream, gatewayStream.get()};
  auto& made = *containers.emplace(kj::heap<Containers>(timer, connections, kj::mv(spec), job.context));
  creating = true;
  return made.make().then([this, &made](std::optional<Refusal> refusal) {
    creating = false;
    // They are the shim's from here on; ours are copies, and what ends is to end with the shim's.
    agentStream = nullptr;
    gatewayStream = nullptr;
    if (!refusal) {
      // It goes on by itself: the agent's start takes as long, and waits for nothing of it.
      gatewayStart = made.startGateway().eagerlyEvaluate(nullptr);
    }
    if (leaving) leave();
    return refusal;
  });
}

Step RunLife::start() {
  auto refuse = [](const char* what) { return std::optional<Refusal>(Refusal{"sandbox_unavailable", what, ""}); };
  KJ_REQUIRE(!starting, "an instance starts once");
  if (stopped || leaving) return refuse("the run was stopped before its agent was started");
  auto& made = *KJ_REQUIRE_NONNULL(containers, "nothing was created");
  auto gateway = kj::mv(KJ_REQUIRE_NONNULL(gatewayStart, "nothing was created"));
  starting = true;
  return both(made.startAgent(), kj::mv(gateway)).then([this, &made](std::optional<Refusal> refusal) -> Step {
    launched = !refusal;
    ended = (refusal ? kj::Promise<AgentEnd>(AgentEnd{{}, "it was not started"}) : watchEnd()).fork();
    started.fulfiller->fulfill();
    if (leaving) leave();
    if (refusal) return undo().then([refusal]() { return refusal; }, [refusal](kj::Exception&&) { return refusal; });
    // A signal that came while it was being started has met nothing.
    if (stopped) tasks.add(made.signalAgent("KILL"));
    return done();
  });
}

Step RunLife::resize(unsigned columns, unsigned rows) {
  if (!launched) return done();
  return KJ_REQUIRE_NONNULL(containers)->resize(columns, rows);
}

kj::Promise<AgentEnd> RunLife::watchEnd() {
  return KJ_REQUIRE_NONNULL(containers)
      ->agentEnd()
      .then(
          [](ProcessEnd end) {
            return AgentEnd{end, end.known ? "" : "the engine does not know how it ended"};
          },
          [](kj::Exception&& exception) {
            return AgentEnd{{}, engineGone(exception).what};
          });
}

const std::string& RunLife::agentId() const { return KJ_REQUIRE_NONNULL(containers)->agentId(); }
const std::string& RunLife::gatewayId() const { return KJ_REQUIRE_NONNULL(containers)->gatewayId(); }

kj::Promise<AgentEnd> RunLife::wait() {
  return startedBranches.addBranch().then([this]() { return ended.addBranch(); });
}

kj::Promise<void> RunLife::signal(int number) {
  KJ_REQUIRE(number == SIGTERM || number == SIGKILL, "only SIGTERM and SIGKILL can be sent to an agent", number);
  stopped = true;
  if (!starting) return kj::READY_NOW;
  auto& made = *KJ_REQUIRE_NONNULL(containers);
  if (number == SIGTERM) return made.signalAgent("TERM");
  return made.signalAgent("KILL").then([this]() { return wait().ignoreResult(); });
}

void RunLife::shimGone() { leave(); }

// What is under way is waited for: it may still make something.
void RunLife::leave() {
  leaving = stopped = true;
  if (creating || (starting && !launched)) return;
  tasks.add(undo()
                .exclusiveJoin(timer.afterDelay(30 * kj::SECONDS))
                .catch_([](kj::Exception&& exception) { logWarning("leaving: {}", describe(exception)); })
                .then([]() { _exit(0); }));
}

// Who has not begun leaves nothing behind; of a run that has, the daemon may want to see how it ended.
kj::Promise<void> RunLife::undo() {
  KJ_IF_MAYBE (made, containers) {
    if (launched) return (*made)->kill();
    return (*made)->remove().ignoreResult();
  }
  return kj::READY_NOW;
}

void RunLife::taskFailed(kj::Exception&& exception) {
  logError("{}", describe(exception));
  _exit(1);
}

}  // namespace oc::docker
