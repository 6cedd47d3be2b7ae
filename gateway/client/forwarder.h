// A port of the container's loopback that leads to a Unix socket.
#pragma once

#include <kj/io.h>

#include <string>
#include <unordered_set>

#include "gateway/loop.h"
#include "gateway/pump.h"

namespace oc::gateway {

class Forwarder final : private Watcher {
 public:
  // Listens at 127.0.0.1:port; throws, naming it.
  Forwarder(Loop& loop, uint16_t port, std::string socketPath);
  ~Forwarder();

 private:
  class Connection;
  void ready(uint32_t events) override;
  bool accept();

  Loop& loop;
  std::string socketPath;
  kj::AutoCloseFd listener;
  Timer retry;
  PipePool pipes;
  std::unordered_set<Connection*> connections;
};

}  // namespace oc::gateway
