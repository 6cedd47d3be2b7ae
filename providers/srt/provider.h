#pragma once

#include "parts.h"
#include "providers/kit/kit.h"

namespace oc::srt {

class SrtProvider final : public kit::Provider {
 public:
  std::string name() const override { return "srt"; }
  std::string usage() const override;
  void parse(const std::vector<std::string>& job) override;
  kit::Profile profile() override;
  capnp::Capability::Client serve(kit::Context& context) override;
  bool exitsWithDaemon() const override { return false; }
  int byHand(const std::vector<std::string>& words) override;

 private:
  Job job;
  bool withShim = false;
};

}  // namespace oc::srt
