// open-conduit-keyring: one secret of the operator's, then gone. See proto/keyring.capnp.
#include "by_hand.h"
#include "job.h"
#include "providers/kit/kit.h"
#include "server.h"

namespace oc::keyring {
namespace {

constexpr int busDescriptor = 4, valueDescriptor = 5;

class KeyringProvider final : public kit::Provider {
 public:
  std::string name() const override { return "keyring"; }
  std::string usage() const override { return usageByHand; }
  void parse(const std::vector<std::string>& words) override { job = parseJob(words); }

  // It needs the socket that it is given, and nothing of the system. What can be asked over that socket is another matter: see
  // docs/security.md.
  kit::Profile profile() override {
    kit::Profile profile;
    profile.seccomp = kit::SeccompList::Alone;
    profile.denyAllSockets = true;
    profile.denyWriteExecute = true;
    profile.maxOpenFiles = 32;
    profile.maxFileSize = 1;
    profile.maxAddressSpace = 256u << 20;
    return profile;
  }

  capnp::Capability::Client serve(kit::Context& context) override {
    return kj::heap<KeyringServer>(context, job, kj::AutoCloseFd(busDescriptor), kj::AutoCloseFd(valueDescriptor));
  }

  int byHand(const std::vector<std::string>& words) override { return keyring::byHand(words); }

 private:
  Job job;
};

}  // namespace
}  // namespace oc::keyring

int main(int argc, char** argv) {
  oc::keyring::KeyringProvider provider;
  return oc::kit::providerMain(argc, argv, provider);
}
