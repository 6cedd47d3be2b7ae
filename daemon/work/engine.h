// Docker Engines, as the daemon reaches them: it dials their sockets and hands the connections to instances of the
// provider. It reads nothing that an Engine says; what an instance makes of it is hostile, and read as such.
#pragma once

#include <kj/async-io.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/refusal.h"
#include "daemon/sandbox/container.h"
#include "daemon/supervisor/supervisor.h"
#include "docker.capnp.h"
#include "gateway.capnp.h"

namespace oc::work {

struct EngineFacts {
  std::string socket;   // the Unix socket that was dialed
  std::string context;  // the Docker context that named it
  std::string id, version, apiVersion, architecture, operatingSystem;
  bool rootless = false;
  bool limitsMemory = false, limitsCpus = false, limitsPids = false;
};

struct ImageFacts {
  std::string reference;  // as the config has it
  std::string id, os, architecture;
  std::vector<std::string> repoDigests;
};

// Everything that a run's container is made from, decided. What proto/docker.capnp's RunSpec carries.
struct ContainerSpec {
  std::string owner, run, role = "agent", planSha256;
  std::string image, gatewayImage;  // ids
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // no secrets
  std::string user, hostname;
  sandbox::ContainerSettings settings;
  bool stdinOpen = true, tty = false;
  uint16_t columns = 0, rows = 0;  // of the terminal
};

void fill(proto::RunSpec::Builder to, const ContainerSpec& spec);
// The policy that the run's gateway gets.
void fill(proto::GatewayPolicy::Builder to, const sandbox::ContainerSettings& settings, bool toolbelt);

// Bounded and made printable, as everything that a provider says.
EngineFacts readEngine(proto::Engine::Reader from);
ImageFacts readImage(proto::Image::Reader from);

// A run's own instance of the provider, before its container is made: what it was started with, and what the Engine
// said.
struct RunEngine {
  RunEngine() = default;
  RunEngine(RunEngine&&) = default;
  ~RunEngine() noexcept(false);  // ends an instance that no agent was started with

  kj::Own<supervisor::Instance> instance;
  kj::AutoCloseFd process;                     // our end of the connection to the run's shim, for the shim
  kj::AutoCloseFd agentStream, gatewayStream;  // duplicates, for the shim, once they are attached
  EngineFacts engine;
  ImageFacts image, gatewayImage;
};

class Engines {
 public:
  // `owner` is this installation's label on whatever it makes.
  Engines(supervisor::Supervisor& supervisor, std::string owner)
      : supervisor(supervisor), ownerLabel(std::move(owner)) {}

  const std::string& owner() const { return ownerLabel; }

  // Starts the run's instance, and asks for the engine and both images. Refuses (`sandbox_unavailable`) an engine that
  // cannot be reached or is too old, and an image that is not there and cannot be pulled.
  kj::Promise<OrRefusal<kj::Own<RunEngine>>> openFor(const std::string& run, EngineFacts where,
                                                     const std::string& image, const std::string& gatewayImage);

  // Instances for one task each.
  kj::Promise<OrRefusal<kj::Own<supervisor::Instance>>> startTask(const std::string& socket, size_t connections,
                                                                  const std::string& label);

  // What is left of a run on the Engine goes. The texts name what could not be removed; empty: all is gone.
  kj::Promise<std::vector<std::string>> remove(const std::string& socket, const std::string& run);
  // The same of everything of ours but these runs.
  kj::Promise<std::vector<std::string>> sweep(const std::string& socket, const std::vector<std::string>& keep);

  struct Found {
    std::string image, planSha256;
    bool running = false;
  };
  // The run's agent container as the Engine has it; nothing when there is none, or nobody to ask, and `why` says so.
  kj::Promise<kj::Maybe<Found>> find(const std::string& socket, const std::string& run, std::string& why);

 private:
  // By an instance for one task, which `ask` is given; its answer has `refusal` and `left`.
  template <typename Ask>
  kj::Promise<std::vector<std::string>> removeBy(const std::string& socket, const std::string& label, Ask ask);

  supervisor::Supervisor& supervisor;
  std::string ownerLabel;
};

// What an image is, or nothing when it is not there. Breaks when the Engine fails.
kj::Promise<kj::Maybe<ImageFacts>> askImage(proto::Docker::Client docker, const std::string& reference);
Refusal noGatewayImage(const std::string& reference);

// A random label for this installation, kept in the state directory.
std::string ownerLabelOf(const Places& places);

}  // namespace oc::work
