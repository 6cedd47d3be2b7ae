// open-conduit-git: one task on one repository, then gone. See proto/git.capnp.
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "by_hand.h"
#include "job.h"
#include "profile.h"
#include "providers/kit/kit.h"
#include "server.h"

namespace oc::git {
namespace {

class GitProvider final : public kit::Provider {
 public:
  std::string name() const override { return "git"; }
  std::string usage() const override { return usageByHand; }
  void parse(const std::vector<std::string>& words) override { job = parseJob(words); }
  kit::Profile profile() override { return profileOf(job); }

  capnp::Capability::Client serve(kit::Context& context) override {
    auto input = take(STDIN_FILENO);
    return kj::heap<GitServer>(context, job, kj::mv(input), take(STDOUT_FILENO));
  }

  int byHand(const std::vector<std::string>& words) override { return git::byHand(words); }

 private:
  // The stream under another number, with /dev/null in its place: closing it ends it, and no file gets the number.
  static kj::AutoCloseFd take(int standard) {
    int copy;
    KJ_SYSCALL(copy = fcntl(standard, F_DUPFD_CLOEXEC, 10));
    kj::AutoCloseFd taken(copy);
    auto nothing = openFile("/dev/null", O_RDWR);
    KJ_SYSCALL(dup2(nothing.get(), standard));
    return taken;
  }

  Job job;
};

}  // namespace
}  // namespace oc::git

int main(int argc, char** argv) {
  oc::git::GitProvider provider;
  return oc::kit::providerMain(argc, argv, provider);
}
