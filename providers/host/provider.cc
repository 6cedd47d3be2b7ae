#include "provider.h"

#include "host.h"

namespace oc::host {

std::string HostProvider::usage() const {
  return "open-conduit-host: an agent's process tree, without a sandbox\n"
         "\n"
         "  open-conduit-host run -- COMMAND…   run it here; everything that it started ends with it\n"
         "  open-conduit-host check\n";
}

void HostProvider::parse(const std::vector<std::string>& job) {
  withShim = kit::hasAgentDescriptors();
  if (!job.empty()) throw kit::UsageError{"a host job has no words: " + job[0]};
}

kit::Profile HostProvider::profile() { return host::profile(); }

capnp::Capability::Client HostProvider::serve(kit::Context& context) {
  return kit::serveAgentTree(context, makeTree(context), withShim);
}

int HostProvider::byHand(const std::vector<std::string>& words) {
  if (words[0] == "check" && words.size() == 1) return kit::checkByHand({});
  if (words[0] == "run" && words.size() > 2 && words[1] == "--") {
    return kit::runAgentByHand({}, {words.begin() + 2, words.end()});
  }
  throw kit::UsageError{"expected: run -- COMMAND, or check"};
}

}  // namespace oc::host
