// How a container's entry point gives the gateway a socket that listens on that container's own loopback: once, over a
// Unix socket, as a descriptor (SCM_RIGHTS). From then on the agent's connections are the gateway's without anybody
// between.
#pragma once

#include <kj/io.h>

#include <functional>
#include <string>

#include "loop.h"

namespace oc::gateway {

class Handover final : private Watcher {
 public:
  // Waits at `path`, in place of a socket that is there; throws, naming it. `take` gets the first TCP socket that
  // listens, non-blocking, and whoever brought it gets one byte. After that the path is gone, so that an agent, which
  // is started later, can bring none of its own: it would keep a copy, and could make it one that blocks us. What is no
  // such socket is closed without an answer.
  Handover(Loop& loop, std::string path, std::function<void(kj::AutoCloseFd)> take);
  ~Handover();

 private:
  void ready(uint32_t events) override;
  void dropGiver();
  void stopListening();

  Loop& loop;
  std::string path;
  std::function<void(kj::AutoCloseFd)> take;
  kj::AutoCloseFd listener, giver;  // one giver at a time; the next waits
};

}  // namespace oc::gateway
