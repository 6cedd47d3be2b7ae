// A daemon that starts with a database which was damaged: what it finds in it, it refuses, ends or goes on with.
#include <stdlib.h>

#include <fstream>
#include <iterator>

#include "daemon_world.h"
#include "fake_supervisor.h"

namespace {

using namespace oc;

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A run in each state, as a daemon that was killed leaves them.
std::string soundDatabase(const fuzz::DaemonWorld& world) {
  auto store = state::Store::open(world.places.database());
  if (!store.ok()) abort();
  int number = 0;
  for (auto runState : {state::RunState::Queued, state::RunState::Preparing, state::RunState::Running,
                        state::RunState::Saving, state::RunState::Cleaning, state::RunState::Ended}) {
    state::WorkRow work;
    work.id = "w-" + std::to_string(++number);
    work.scope = "demo";
    work.binding = number % 2 == 0 ? "plain" : "container";
    work.title = "title";
    work.branch = "agent/" + work.id;
    work.checkout = world.root + "/checkout";
    work.base = std::string(40, 'a');
    work.workspaceMode = "clone";
    work.workspaceMade = true;
    state::RunRow run;
    run.id = "r-" + std::to_string(number);
    run.work = work.id;
    run.state = runState;
    run.policyKind = number % 2 == 0 ? "none" : "docker";
    store.value()->addWorkWithRun(work, run);
    std::string plan = R"({"sandbox":{"engine":{"socket":")" + world.root +
                       R"(/docker.sock"},"image":{"id":"sha256:1"}},"toolbelt":{"operations":["conduit.work.get"]}})";
    store.value()->pinPlan(run.id, plan, sha256Hex(plan));
    store.value()->setRunKey(run.id, SecretBytes(std::string(32, 'k')));
    store.value()->addNote(work.id, {run.id, 1, "a note"});
  }
  store.value() = nullptr;
  return contentOf(world.places.database());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto io = kj::setupAsyncIo();
  static fuzz::DaemonWorld world;
  static const auto sound = soundDatabase(world);
  fuzz::Input input(data, size);
  fuzz::failStarts(input.below(2) == 0);
  world.clear();
  auto damaged = sound;
  for (size_t left = input.below(8); left > 0; --left) {
    auto at = input.byte() << 16 | input.byte() << 8 | input.byte();
    for (size_t n = input.below(9); n > 0; --n) damaged[at++ % damaged.size()] = static_cast<char>(input.byte());
  }
  std::ofstream(world.places.database(), std::ios::binary) << damaged;
  {
    supervisor::Supervisor supervisor(io, world.root + "/programs");
    auto opened = state::Store::open(world.places.database());
    if (!opened.ok()) {
      if (opened.refusal().reason.empty()) abort();
      return 0;
    }
    // Whatever cannot be read is an exception that says so, to whoever starts the daemon.
    kj::runCatchingExceptions([&]() {
      work::Scheduler scheduler(io, supervisor, std::move(opened.value()), world.config(), world.options());
      scheduler.recover();
      for (int i = 0; i < 20; ++i) {
        io.waitScope.poll();
        for (auto* peer : fuzz::livePeers()) peer->answer(input);
      }
      fuzz::forgetPeers();
      io.waitScope.poll();
    });
  }
  fuzz::forgetPeers();
  io.waitScope.poll();
  return 0;
}
