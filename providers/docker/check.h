// Doctor's: a container like a run's, gateway included, from its making to its removal.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>

#include <string>

#include "containers.h"
#include "proto/rpc.h"
#include "providers/kit/frames.h"

namespace oc::docker {

class Checking {
 public:
  struct Setup {
    kj::Own<kj::AsyncIoStream> agent, gateway;
    RunSpec spec;
    capnp::Data::Reader gatewayPolicy;  // a serialized GatewayPolicy message; read at once
  };

  Checking(kj::Timer& timer, Engine& engine, Setup setup, std::string context);

  // Once. Whatever comes of it, nothing is left on the engine.
  Step run();

  // After run. -1: it did not end within 30 seconds.
  int exitCode() const { return code; }
  // The container's standard output, at most 64 KiB.
  const std::string& output() const { return text; }

 private:
  Step configureGateway();
  Step readOutput();
  kj::Promise<void> readSome();
  Step readEnd();
  Step remove(std::optional<Refusal> refusal);

  kj::Timer& timer;
  Engine& engine;
  kj::Own<kj::AsyncIoStream> agent, gateway;
  kj::Array<capnp::word> policy;
  bool network;
  std::string context;
  Containers containers;
  kj::Own<Connection> toGateway;
  int code = -1;
  std::string text;
  kit::FrameReader frames;
  kj::byte buffer[16384];
};

}  // namespace oc::docker
