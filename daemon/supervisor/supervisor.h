// Starts providers, and nothing else: the only place in the daemon that makes processes.
#pragma once

#include <kj/async-io.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "instance.h"

namespace oc::supervisor {

struct LaunchSpec {
  std::string provider;                          // "git": open-conduit-git
  std::string label;                             // for status: which job
  std::vector<std::string> job;                  // its words
  std::vector<std::string> hidden, kept;         // see the kit's profile
  std::vector<std::pair<int, int>> descriptors;  // (ours, theirs), besides 3
  int errors = -1;                               // its standard error; -1: the daemon's own
  bool outlivesUs = false;                       // a run's parts go on when the daemon ends
  bool carriesCalls = false;                     // it is talked to for as long as it lives (proto/shim_peer.h)
};

// Why an instance did not start: for a person, naming the provider and the protection or step.
struct LaunchFailure {
  std::string what;
};

class Supervisor final : private kj::TaskSet::ErrorHandler {
 public:
  // Providers are looked for in `directory`. `passEnv` names, by provider, what of our environment it gets.
  Supervisor(kj::AsyncIoContext& io, std::string directory);

  void setPassEnv(std::map<std::string, std::vector<std::string>> passEnv) { this->passEnv = kj::mv(passEnv); }
  // Directories that no instance sees (where its kernel grants mount namespaces), but for its job's own.
  void setHidden(std::vector<std::string> directories) { alwaysHidden = kj::mv(directories); }

  // Started, locked down, verified. The promise breaks, naming the reason, when any of it fails or takes over ten
  // seconds; then nothing of it is left.
  kj::Promise<kj::Own<Instance>> start(LaunchSpec spec);

  // Where the programs lie.
  const std::string& programs() const { return directory; }
  std::vector<Instance*> live() const;
  kj::Timer& timer() { return io.provider->getTimer(); }
  kj::AsyncIoContext& context() { return io; }

 private:
  friend class Instance;

  SpawnSpec describe(const LaunchSpec& spec, int rpc) const;
  kj::Promise<void> shakeHands(Instance& instance, kj::Own<kj::AsyncIoStream> stream, bool carriesCalls);
  void adoptServing(Instance& instance, pid_t pid);
  void verify(Instance& instance);
  kj::Promise<void> askProtections(Instance& instance);
  void reapLater(kj::AutoCloseFd pidfd);
  void taskFailed(kj::Exception&& exception) override;

  kj::AsyncIoContext& io;
  std::string directory;
  std::map<std::string, std::vector<std::string>> passEnv;
  std::vector<std::string> alwaysHidden;
  std::set<Instance*> instances;
  kj::TaskSet reapers;
};

}  // namespace oc::supervisor
