// Where a daemon's scheduler lives, for fuzzers: directories, a config, sockets of a bus and an engine on which nobody
// answers.
#pragma once

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/work/agent_parts.h"
#include "daemon/work/scheduler.h"

namespace oc::fuzz {

// A world on disk, made once; the database is new for each input.
struct DaemonWorld {
  DaemonWorld() {
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
  ~DaemonWorld() { removeTree(root); }

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

  work::SchedulerOptions options() const {
    return {places.config(), places, own, root + "/programs", [](size_t) {}};
  }
  // As before the first start.
  void clear() {
    for (auto suffix : {"", "-wal", "-shm"}) unlink((places.database() + suffix).c_str());
    hangUp();
    removeTree(places.runsDir());
    removeTree(places.worksDir());
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

}  // namespace oc::fuzz
