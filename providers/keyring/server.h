// The Keyring interface for one job.
#pragma once

#include "job.h"
#include "keyring.capnp.h"
#include "providers/kit/kit.h"
#include "secret_service.h"

namespace oc::keyring {

class KeyringServer final : public proto::Keyring::Server {
 public:
  // `bus`: a connected socket of the session bus. `value`: the pipe that get writes to and set reads from.
  KeyringServer(kit::Context& context, Job job, kj::AutoCloseFd bus, kj::AutoCloseFd value);

 protected:
  kj::Promise<void> protections(ProtectionsContext call) override;
  kj::Promise<void> get(GetContext call) override;
  kj::Promise<void> set(SetContext call) override;
  kj::Promise<void> remove(RemoveContext call) override;
  kj::Promise<void> list(ListContext call) override;

 private:
  void requireAction(Action action);

  kit::Context& context;
  Job job;
  SecretService keyring;
  kj::AutoCloseFd value;
};

}  // namespace oc::keyring
