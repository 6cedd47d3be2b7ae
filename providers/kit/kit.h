// A provider's main. Two ways to run one:
//
//   PROGRAM --instance [--hide DIR]... [--keep DIR]... -- JOB…    started by the daemon: RPC on descriptor 3
//   PROGRAM JOB…                                                  by hand: starts itself as an instance, with
//                                                                 the same lockdown, and talks to it
//
// As an instance: parse the job, lock down by the job's profile, report ready, and only then serve. Before RPC the
// instance speaks a few bytes on descriptor 3 (see handshake.h): the pid that serves, then "ready", or what failed.
#pragma once

#include <capnp/capability.h>
#include <kj/async-io.h>

#include <string>
#include <utility>
#include <vector>

#include "base/refusal.h"
#include "base/spawn.h"
#include "common.capnp.h"
#include "profile.h"
#include "proto/convert.h"
#include "proto/rpc.h"

namespace oc::kit {

constexpr int rpcDescriptor = 3;

// Thrown by Provider::parse and ::byHand: printed with the usage, exit code 2.
struct UsageError {
  std::string message;
};

// What a server needs besides its job.
struct Context {
  kj::AsyncIoContext& io;
  Protections protections;
  kj::Promise<void> onDaemonGone;  // resolves when the connection on descriptor 3 has closed (a branch)
};

// To standard error: the reason, why and the fix. Returns the exit code that goes with it, 1.
int printRefusal(const Refusal& refusal);

// An instance that was started by hand; its end closes with it.
class ByHandInstance {
 public:
  capnp::Capability::Client capability();
  kj::AsyncIoContext& io();
  pid_t pid() const;
  // Call after the last use: closes the connection and waits for the instance's end.
  void finish();

  struct Impl;
  explicit ByHandInstance(kj::Own<Impl> impl);
  ~ByHandInstance();

 private:
  kj::Own<Impl> impl;
};

class Provider {
 public:
  virtual ~Provider() noexcept(false) = default;
  virtual std::string name() const = 0;   // "git": the program is open-conduit-git
  virtual std::string usage() const = 0;  // of its use by hand

  // The job, from the words behind "--". Called once, before anything else; looks at no file.
  virtual void parse(const std::vector<std::string>& job) = 0;
  virtual Profile profile() = 0;

  // After lockdown: the capability that descriptor 3 offers. A provider that lives on without a daemon overrides
  // exitsWithDaemon and calls exit itself.
  virtual capnp::Capability::Client serve(Context& context) = 0;
  virtual bool exitsWithDaemon() const { return true; }

  // By hand: everything behind the program's name. Uses startByHand. Returns the exit code.
  virtual int byHand(const std::vector<std::string>& words) = 0;
};

// Runs a provider; what main returns.
int providerMain(int argc, char** argv, Provider& provider);

using Environment = std::vector<std::pair<std::string, std::string>>;

// Starts this very program as an instance for `job`, with `descriptors` as in SpawnSpec besides 3, and `more` in its
// environment. Throws, with what the instance said, when it does not get ready. Its standard error is ours.
kj::Own<ByHandInstance> startByHand(const std::vector<std::string>& job,
                                    std::vector<std::pair<int, int>> descriptors = {}, const Environment& more = {});

// Fills the answer to Instance.protections.
void answerProtections(const Context& context, proto::Instance::ProtectionsResults::Builder results);

}  // namespace oc::kit
