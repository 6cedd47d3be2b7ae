#include "wait.h"

#include <fmt/format.h>

#include "base/reasons.h"
#include "cli/failure.h"
#include "cli/ui/views.h"

namespace oc::cli {

namespace {

// An upgrade restarts the daemon while runs go on.
constexpr int reconnectTries = 120;
constexpr kj::Duration reconnectPause = 500 * kj::MILLISECONDS;

// False when Ctrl-C came first.
bool pauseUnlessInterrupted(World& world) {
  auto pause = world.io().provider->getTimer().afterDelay(reconnectPause).then([]() { return true; });
  return await(world, pause.exclusiveJoin(world.interrupted().then([]() { return false; })));
}

// Nothing when Ctrl-C came first.
kj::Maybe<Link> reconnect(World& world, const std::string& run) {
  world.err("the daemon went away; waiting for the next one (Ctrl-C leaves the run going)\n");
  for (int i = 0;; ++i) {
    if (!pauseUnlessInterrupted(world)) return nullptr;
    try {
      return world.connect();
    } catch (const Failure& failure) {
      if (failure.code == NoDaemon && i < reconnectTries) continue;
      if (failure.code != NoDaemon) throw;
      auto why = failure.why;
      why.what += "; the run goes on without it";
      why.fix += "   then: open-conduit runs get " + run;
      throw Failure{NoDaemon, why};
    }
  }
}

// A run that failed may be tried again, by another one: its id, or nothing.
std::string nextTry(World& world, proto::Run::Reader ended) {
  if (ended.getOutcome() == "succeeded") return "";
  auto link = world.connect();
  auto request = link.control.listRunsRequest();
  request.setWork(ended.getWork());
  auto answer = ask(world, request.send());
  for (auto run : answer.getRuns()) {
    if (run.getAttempt() == ended.getAttempt() + 1 && run.getCreatedAt() >= ended.getCreatedAt())
      return toString(run.getId());
  }
  return "";
}

kj::Maybe<EndedRun> interrupted(World& world, const std::string& run) {
  world.err(fmt::format("\nrun {0} goes on   (open-conduit runs get {0}, open-conduit runs stop {0})\n", run));
  return nullptr;
}

}  // namespace

kj::Maybe<EndedRun> awaitRun(World& world, Link link, const std::string& run) {
  for (;;) {
    try {
      auto request = link.control.waitRunRequest();
      request.setId(toText(run));
      auto answer = askUntilInterrupted(world, request.send());
      KJ_IF_MAYBE (ended, answer) {
        requireDone(ended->getRefusal());
        return kj::mv(*ended);
      }
      return interrupted(world, run);
    } catch (const Failure& failure) {
      if (failure.code != NoDaemon) throw;
    }
    auto again = reconnect(world, run);
    KJ_IF_MAYBE (next, again) {
      link = kj::mv(*next);
    } else {
      return interrupted(world, run);
    }
  }
}

kj::Maybe<EndedRun> awaitLastTry(World& world, Link link, std::string run, bool quiet) {
  for (;;) {
    auto ended = awaitRun(world, kj::mv(link), run);
    std::string next;
    KJ_IF_MAYBE (answer, ended) next = nextTry(world, answer->getRun());
    if (next.empty()) return ended;
    if (!quiet) world.err(fmt::format("run {} failed and is tried again as {}\n", line(run), line(next)));
    run = next;
    link = world.connect();
  }
}

void tellEnd(World& world, proto::Run::Reader run) {
  auto text = fmt::format("run {}   {}\n", line(toString(run.getId())), stateOf(world.look, run));
  if (run.getOutcome() != "succeeded") {
    auto message = toString(run.getMessage()), fix = fixFor(toString(run.getReason()), toString(run.getFix()));
    if (!message.empty()) text += fmt::format("  why: {}\n", paragraph(message, 7));
    if (!fix.empty()) text += fmt::format("  fix: {}\n", paragraph(fix, 7));
    text += fmt::format("  log: open-conduit runs logs {}\n", line(toString(run.getId())));
  }
  world.err(text);
}

}  // namespace oc::cli
