// A provider that turned hostile the moment after it was locked down.
//
//   attacker --instance … -- PROFILE TARGETS… -- JOB…     as the daemon starts a provider: the kit's own lockdown
//   attacker --with MEASURES --hide DIR -- PROFILE TARGETS… -- JOB…   with only these of its measures
//
// It tries every attack, and writes a line for each to descriptor 4: the result, a tab, the attack's name. With `--say
// WHAT` before the profile it speaks to the daemon instead (speech.h), and stays.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

#include "attacks.h"
#include "base/fd.h"
#include "base/text.h"
#include "providers/kit/handshake.h"
#include "providers/docker/profile.h"
#include "providers/git/profile.h"
#include "providers/github/profile.h"
#include "providers/host/host.h"
#include "providers/keyring/profile.h"
#include "providers/kit/kit.h"
#include "providers/kit/landlock.h"
#include "providers/kit/lockdown.h"
#include "providers/kit/namespaces.h"
#include "providers/kit/syscall_filter.h"
#include "providers/run/profile.h"
#include "providers/srt/profile.h"
#include "speech.h"

namespace oc::attack {
namespace {

constexpr int reportDescriptor = 4;

struct Order {
  std::string say;
  std::string profile;
  Targets targets;
  std::vector<std::string> job;
};

Order readOrder(std::vector<std::string> words) {
  Order order;
  if (words.at(0) == "--say") {
    order.say = words.at(1);
    words.erase(words.begin(), words.begin() + 2);
  }
  order.profile = words.at(0);
  size_t i = 1;
  std::vector<std::string> targets;
  for (; i < words.size() && words[i] != "--"; ++i) targets.push_back(words[i]);
  order.targets = targetsFrom(targets);
  if (i < words.size()) order.job.assign(words.begin() + i + 1, words.end());
  return order;
}

kit::Profile profileOf(const Order& order) {
  if (order.profile == "run") return run::profile();
  if (order.profile == "docker") return docker::profile();
  if (order.profile == "keyring") return keyring::profile();
  if (order.profile == "host") return host::profile();
  if (order.profile == "srt") return srt::profileOf(srt::parsePartialJob(order.job));
  if (order.profile == "git") return git::profileOf(git::parseJob(order.job));
  if (order.profile == "github") return github::profileOf(github::parseJob(order.job));
  throw kit::UsageError{"no such profile: " + order.profile};
}

// Each in turn: what one leaves behind (a mount that it made) is part of the next one's world, as in life.
void attack(const Targets& targets) {
  std::string report;
  for (auto& one : allAttacks()) report += fmt::format("{}\t{}\n", one.tryIt(targets), one.name);
  writeAll(reportDescriptor, report);
}

class Attacker final : public kit::Provider {
 public:
  std::string name() const override { return "attacker"; }
  std::string usage() const override { return ""; }
  void parse(const std::vector<std::string>& words) override { order = readOrder(words); }
  kit::Profile profile() override { return profileOf(order); }
  int byHand(const std::vector<std::string>&) override { return 2; }

  capnp::Capability::Client serve(kit::Context& context) override {
    if (!order.say.empty()) sayAndStay(context.protections);
    attack(order.targets);
    return kj::heap<Server>(context);
  }

 private:
  // The connection is the speaker's, and blocks for it as it does for a program that is written badly enough.
  [[noreturn]] void sayAndStay(const Protections& protections) {
    kit::sayReady(kit::rpcDescriptor);
    KJ_SYSCALL(fcntl(kit::rpcDescriptor, F_SETFL, 0));
    speak(kit::rpcDescriptor, order.say, protections);
    for (;;) pause();
  }

  class Server final : public proto::Instance::Server {
   public:
    explicit Server(kit::Context& context) : context(context) {}

   protected:
    kj::Promise<void> protections(ProtectionsContext call) override {
      kit::answerProtections(context, call.getResults());
      return kj::READY_NOW;
    }

   private:
    kit::Context& context;
  };

  Order order;
};

// ---- with some measures only: the kit's own functions, in the kit's order

using Measures = std::vector<std::string>;

bool has(const Measures& measures, const char* name) {
  return std::find(measures.begin(), measures.end(), name) != measures.end();
}

void leaveOut(kit::Profile& profile, const Measures& measures) {
  auto keep = [&](kit::Need& need, const char* name) {
    if (!has(measures, name)) need = kit::Need::No;
  };
  keep(profile.mountNamespace, "mount namespace");
  keep(profile.pidNamespace, "pid namespace");
  keep(profile.networkNamespace, "network namespace");
  keep(profile.ipcNamespace, "ipc namespace");
  bool none = profile.mountNamespace == kit::Need::No && profile.pidNamespace == kit::Need::No &&
              profile.networkNamespace == kit::Need::No && profile.ipcNamespace == kit::Need::No;
  if (none) profile.userNamespace = kit::Need::No;
  if (!has(measures, "Landlock files")) profile.landlockFiles = false;
  if (!has(measures, "Landlock scopes")) profile.landlockScopes = kit::Need::No;
}

void limitTo(int resource, uint64_t value) {
  if (value == 0) return;
  struct rlimit limit = {value, value};
  KJ_SYSCALL(setrlimit(static_cast<__rlimit_resource>(resource), &limit));
}

void limitDescriptors(const kit::Profile& profile, bool measured) {
  struct rlimit limit;
  KJ_SYSCALL(getrlimit(RLIMIT_NOFILE, &limit));
  if (measured) limit.rlim_max = std::min<rlim_t>(limit.rlim_max, profile.maxOpenFiles);
  limit.rlim_cur = limit.rlim_max;
  KJ_SYSCALL(setrlimit(RLIMIT_NOFILE, &limit));
}

void limitCores() {
  struct rlimit none = {0, 0};
  KJ_SYSCALL(setrlimit(RLIMIT_CORE, &none));
}

int attackWith(std::vector<std::string> words) {
  Measures measures;
  std::vector<std::string> hidden;
  size_t i = 1;
  for (; words.at(i) != "--"; i += 2) (words[i] == "--with" ? measures : hidden).push_back(words.at(i + 1));
  auto order = readOrder({words.begin() + static_cast<long>(i) + 1, words.end()});
  auto profile = profileOf(order);
  profile.hidden = hidden;
  leaveOut(profile, measures);
  limitDescriptors(profile, has(measures, "limits"));
  if (has(measures, "limits")) limitCores();
  if (has(measures, "limits")) limitTo(RLIMIT_AS, profile.maxAddressSpace);
  if (has(measures, "descriptors closed")) {
    KJ_SYSCALL(syscall(SYS_close_range, 12, ~0u, 0));
  }
  Protections protections;
  kit::enterNamespaces(profile, protections, [](pid_t) {});
  if (protections.userNamespace) limitTo(RLIMIT_NPROC, profile.maxProcesses);
  KJ_SYSCALL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  constexpr int setMdwe = 65;
  if (has(measures, "MDWE") && profile.denyWriteExecute) prctl(setMdwe, 1, 0, 0, 0);
  kit::restrictByLandlock(kit::landlockAbi(), profile.landlockFiles, profile.files, profile.connectPorts,
                          profile.landlockScopes != kit::Need::No);
  if (has(measures, "seccomp")) kit::restrictBySeccomp(profile);
  attack(order.targets);
  return 0;
}

}  // namespace
}  // namespace oc::attack

int main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (argc > 1 && words[1] == "--instance") {
    oc::attack::Attacker attacker;
    return oc::kit::providerMain(argc, argv, attacker);
  }
  try {
    return oc::attack::attackWith(words);
  } catch (const kj::Exception& exception) {
    fprintf(stderr, "attacker: %s\n", exception.getDescription().cStr());
    return 1;
  }
}
