// The daemon's whole life of a run, with every instance that it starts taken over: git, host, the shim, docker, the
// keyring. What they answer is read by the daemon's own code, down to its database.
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "daemon/work/agent_parts.h"
#include "daemon/work/scheduler.h"
#include "fake_supervisor.h"

namespace {

using namespace oc;

// A world on disk, made once; the database is new for each input.
struct World {
  World() {
    const char* named = getenv("FUZZ_STATE");
    root = (named != nullptr ? std::string(named) : "/tmp") + "/w" + std::to_string(getpid());
    removeTree(root);
    for (auto& path : {root, root + "/config", root + "/data", root + "/state", root + "/runtime", root + "/checkout",
                       root + "/programs"}) {
      if (mkdir(path.c_str(), 0700) < 0) abort();
    }
    engine = work::listenAt(root + "/docker.sock");
    bus = work::listenAt(root + "/bus");
    places = {root, root + "/config", root + "/state", root + "/data", root + "/runtime"};
    own = {{"DBUS_SESSION_BUS_ADDRESS", "unix:path=" + root + "/bus"},
           {"OPEN_CONDUIT_GATEWAY_IMAGE", "sha256:1"},
           {"XDG_RUNTIME_DIR", root},
           {"PATH", "/usr/bin:/bin"}};
  }
  ~World() { removeTree(root); }

  config::Config config() const {
    config::Config config;
    config.settings.extensions["docker"].passEnv = {"XDG_RUNTIME_DIR"};
    config::Scope scope;
    scope.id = "demo";
    scope.secretRefs["KEY"] = "keyring:key";
    scope.authorization.operations = {"@conduit.work"};
    for (auto name : {"plain", "container"}) {
      config::Binding binding;
      binding.scope = "demo";
      binding.name = name;
      binding.executor = "shell";
      binding.command = {"true"};
      binding.operations = {"@conduit.work"};
      binding.hasResource = true;
      binding.checkout = root + "/checkout";
      binding.secretNames = {"KEY"};
      if (binding.name == "container") binding.container.emplace().image = "demo@sha256:" + std::string(64, '1');
      scope.bindings.push_back(binding);
    }
    config.scopes.push_back(scope);
    return config;
  }

  std::string root;
  // What was dialed is forgotten, so that the queue does not fill.
  void hangUp() {
    for (int socket : {engine.get(), bus.get()}) {
      for (int fd; (fd = accept(socket, nullptr, nullptr)) >= 0;) close(fd);
    }
  }

  kj::AutoCloseFd engine, bus;
  Places places;
  work::Environment own;
};

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
  static World world;
  fuzz::Input input(data, size,
                    {"amd64", std::string(40, 'a'), "agent/w-1", "refs/heads/main", "sha256:1", "\xff\xfe"});
  fuzz::failStarts(false);
  auto database = world.places.database();
  for (auto suffix : {"", "-wal", "-shm"}) unlink((database + suffix).c_str());
  world.hangUp();
  removeTree(world.places.runsDir());
  removeTree(world.places.worksDir());
  {
    supervisor::Supervisor supervisor(io, world.root + "/programs");
    auto opened = state::Store::open(database);
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
