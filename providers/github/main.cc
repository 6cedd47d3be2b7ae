// open-conduit-github: one connection to GitHub, or the listener for its webhooks. See proto/github.capnp.
#include "by_hand.h"
#include "job.h"
#include "profile.h"
#include "providers/kit/kit.h"
#include "server.h"
#include "webhook.h"

namespace oc::github {
namespace {

class GitHubProvider final : public kit::Provider {
 public:
  std::string name() const override { return "github"; }
  std::string usage() const override { return usageByHand; }
  void parse(const std::vector<std::string>& words) override { job = parseJob(words); }
  kit::Profile profile() override { return profileOf(job); }

  capnp::Capability::Client serve(kit::Context& context) override {
    if (job.role == Role::Webhook) return kj::heap<WebhookServer>(context);
    return kj::heap<GitHubServer>(context, job);
  }

  int byHand(const std::vector<std::string>& words) override { return github::byHand(words); }

 private:
  Job job;
};

}  // namespace
}  // namespace oc::github

int main(int argc, char** argv) {
  oc::github::GitHubProvider provider;
  return oc::kit::providerMain(argc, argv, provider);
}
