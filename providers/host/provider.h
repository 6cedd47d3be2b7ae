#pragma once

#include "providers/kit/kit.h"

namespace oc::host {

class HostProvider final : public kit::Provider {
 public:
  std::string name() const override { return "host"; }
  std::string usage() const override;
  void parse(const std::vector<std::string>& job) override;
  kit::Profile profile() override;
  capnp::Capability::Client serve(kit::Context& context) override;
  bool exitsWithDaemon() const override { return false; }
  int byHand(const std::vector<std::string>& words) override;

 private:
  bool withShim = false;
};

}  // namespace oc::host
