// Docker Engines, as the daemon reaches them: it dials their sockets and hands the connections to instances of the
// provider. It reads nothing that an Engine says; what an instance makes of it is hostile, and read as such.
#pragma once

#include <kj/async-io.h>

#include <cstdint>
#include <map>
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
  std::string preparedGateway;  // the name of one that was made ahead; empty: the run's own is made
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
  bool containerStarted = false;               // ahead of its run: the entry point waits for the gateway's policy
  std::string preparedGateway;                 // whose `gatewayStream` is then; empty: none
  EngineFacts engine;
  ImageFacts image, gatewayImage;
};

class Engines {
 public:
  // `owner` is this installation's label on whatever it makes.
  Engines(supervisor::Supervisor& supervisor, std::string owner)
      : supervisor(supervisor), ownerLabel(std::move(owner)) {}

  const std::string& owner() const { return ownerLabel; }

  // Starts the run's instance, once what earlier runs left there is swept, and asks for the engine and both images.
  // Refuses (`sandbox_unavailable`) an engine that cannot be reached or is too old, and an image that is not there and
  // cannot be pulled.
  kj::Promise<OrRefusal<kj::Own<RunEngine>>> openFor(const std::string& run, EngineFacts where,
                                                     const std::string& image, const std::string& gatewayImage);

  // Instances for one task each.
  kj::Promise<OrRefusal<kj::Own<supervisor::Instance>>> startTask(const std::string& socket, size_t connections,
                                                                  const std::string& label);

  // Makes a gateway ahead of its run: its attached stream, of which nothing was read.
  kj::Promise<OrRefusal<kj::AutoCloseFd>> prepareGateway(const std::string& socket, const std::string& name,
                                                         const std::string& image, const std::string& user);

  // What is left of a run on the Engine goes, and of the gateway that was made ahead for it (empty: none). The texts
  // name what could not be removed; empty: all is gone.
  kj::Promise<std::vector<std::string>> remove(const std::string& socket, const std::string& run,
                                               const std::string& gateway = "");
  // The same by the run's own instance, which is at hand and may begin at once; by another one where it fails.
  kj::Promise<std::vector<std::string>> removeBy(proto::Docker::Client docker, const std::string& socket,
                                                 const std::string& run, const std::string& gateway);
  // The same of everything of ours but these runs and gateways. Once for each Engine, when the daemon starts: it takes
  // for an earlier run's whatever it does not know, so `openFor` waits for it.
  kj::Promise<std::vector<std::string>> sweep(const std::string& socket, const std::vector<std::string>& keep);
  // That sweep is over, or there is none.
  kj::Promise<void> whenSwept(const std::string& socket);

  struct Found {
    std::string image, planSha256;
    bool running = false;
  };
  // The run's agent container as the Engine has it; nothing when there is none, or nobody to ask, and `why` says so.
  kj::Promise<kj::Maybe<Found>> find(const std::string& socket, const std::string& run, std::string& why);

 private:
  // By an instance for one task, which `ask` is given; its answer has `refusal` and `left`.
  template <typename Ask>
  kj::Promise<std::vector<std::string>> removeByTask(const std::string& socket, const std::string& label, Ask ask);
  kj::Promise<OrRefusal<kj::Own<supervisor::Instance>>> startTask(std::vector<kj::AutoCloseFd> links,
                                                                  const std::string& label);

  kj::Promise<OrRefusal<kj::Own<RunEngine>>> openNow(const std::string& run, EngineFacts where,
                                                     const std::string& image, const std::string& gatewayImage);
  supervisor::Supervisor& supervisor;
  std::string ownerLabel;
  std::map<std::string, kj::ForkedPromise<void>> sweeps;  // by socket
};

// What the Engine behind a task's connections says of itself; `where` has its socket and context. A refusal when it is
// too old, none, or says nothing for half a minute.
kj::Promise<OrRefusal<EngineFacts>> askEngine(kj::Timer& timer, proto::Docker::Client docker, EngineFacts where);
// What an image is, or nothing when it is not there. Breaks when the Engine fails.
kj::Promise<OrRefusal<std::optional<ImageFacts>>> askImage(proto::Docker::Client docker, const std::string& reference);
Refusal noGatewayImage(const std::string& reference);
// The Engine has it, and said this of it.
Refusal unfitGatewayImage(Refusal refusal);

// A random label for this installation, kept in the state directory.
std::string ownerLabelOf(const Places& places);

}  // namespace oc::work
