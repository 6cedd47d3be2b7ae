// The daemon's whole life of a run, with every instance that it starts taken over: git, host, the shim, docker, the
// keyring. What they answer is read by the daemon's own code, down to its database.
#include <stdlib.h>

#include "base/text.h"
#include "daemon_world.h"
#include "fake_supervisor.h"

namespace {

using namespace oc;

// What came to the database can be shown: bounded, and text.
void requireSound(state::Store& store) {
  if (store.integrity() != "ok") abort();
  for (auto& run : store.recentRuns(100)) {
    if (!isUtf8(run.message) || run.message.size() > 8192 || run.notes.size() > 300) abort();
    if (!isUtf8(run.savedAs) || run.savedAs.size() > 1024) abort();
    for (auto& note : run.notes) {
      if (!isUtf8(note) || note.size() > 8192) abort();
    }
    auto row = store.work(run.work);
    if (!row || row->branch.size() > 1024 || row->base.size() > 128 || row->savedTip.size() > 128) abort();
    if (hasControlCharacters(row->branch) || hasControlCharacters(row->savedAs)) abort();
  }
}

// Many come before the daemon is asked for anything else.
void drive(kj::AsyncIoContext& io, work::Scheduler& scheduler, const std::string& run, fuzz::Input& input) {
  for (int steps = 0; !input.done() && steps < 200; ++steps) {
    io.waitScope.poll();
    auto peers = fuzz::livePeers();
    auto what = input.below(16);
    if (what == 0) {
      static_cast<void>(scheduler.stopRun(run));
    } else if (what == 1) {
      fuzz::failStarts(input.below(4) == 0);
    } else if (!peers.empty()) {
      // The youngest is the one that is waited for.
      auto& peer = *peers[peers.size() - 1 - input.below(peers.size()) / 2];
      if (what < 6) {
        peer.say(input);
      } else {
        peer.answer(input);
      }
    }
    io.waitScope.poll();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto io = kj::setupAsyncIo();
  static fuzz::DaemonWorld world;
  fuzz::Input input(data, size,
                    {"amd64", std::string(40, 'a'), "agent/w-1", "refs/heads/main", "sha256:1", "\xff\xfe"});
  fuzz::failStarts(false);
  world.clear();
  {
    supervisor::Supervisor supervisor(io, world.root + "/programs");
    auto opened = state::Store::open(world.places.database());
    if (!opened.ok()) abort();
    work::Scheduler scheduler(
        io, supervisor, std::move(opened.value()), world.config(),
        {world.places.config(), world.places, world.own, world.root + "/programs", [](size_t) {}});
    scheduler.recover();
    auto made = scheduler.newWork({"demo", input.below(2) == 0 ? "plain" : "container", "title", "body"});
    if (!made.ok()) abort();
    drive(io, scheduler, made.value().run, input);
    fuzz::forgetPeers();
    io.waitScope.poll();
    requireSound(scheduler.store());
  }
  fuzz::forgetPeers();
  io.waitScope.poll();
  return 0;
}
