#include "host.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/text.h"
#include "providers/kit/reaper.h"
#include "tree.h"

namespace oc::host {

namespace {

// The program that a shell would take, by the agent's own PATH. Empty: none.
std::string findProgram(const kit::AgentCommand& command) {
  auto& name = command.command[0];
  auto isProgram = [](const std::string& path) {
    struct stat stats;
    return stat(path.c_str(), &stats) == 0 && S_ISREG(stats.st_mode) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    auto path = name[0] == '/' ? name : command.directory + "/" + name;
    return isProgram(path) ? path : "";
  }
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  for (auto& [key, value] : command.environment) {
    if (key == "PATH") path = value;
  }
  for (size_t at = 0; at <= path.size();) {
    auto end = std::min(path.find(':', at), path.size());
    auto candidate = path.substr(at, end - at) + "/" + name;
    if (candidate[0] == '/' && candidate != "/" + name && isProgram(candidate)) return candidate;
    at = end + 1;
  }
  return "";
}

class HostTree final : public kit::AgentTree {
 public:
  explicit HostTree(kit::Context& context) : timer(context.io.provider->getTimer()), reaper(context.io.unixEventPort) {
    KJ_SYSCALL(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
  }

  std::optional<Refusal> start(const kit::AgentCommand& command) override {
    SpawnSpec spec;
    spec.program = findProgram(command);
    if (spec.program.empty()) {
      return Refusal{"sandbox_unavailable", fmt::format("there is no program \"{}\"", printable(command.command[0])),
                     "install it, or name it by its path"};
    }
    struct stat stats;
    if (stat(command.directory.c_str(), &stats) < 0 || !S_ISDIR(stats.st_mode)) {
      return Refusal{"sandbox_unavailable", fmt::format("there is no directory {}", printable(command.directory)), ""};
    }
    spec.arguments.assign(command.command.begin() + 1, command.command.end());
    spec.environment = command.environment;
    spec.descriptors = {{kit::agentInput, 0}, {kit::agentOutput, 1}, {kit::agentErrors, 2}};
    spec.directory = command.directory;
    spec.dieWithParent = true;  // what it has started by then goes on: see docs/security.md
    auto spawned = spawn(spec);
    end = reaper.whenEnded(spawned.pid);
    for (int fd : {kit::agentInput, kit::agentOutput, kit::agentErrors}) close(fd);
    return std::nullopt;
  }

  kj::Promise<ProcessEnd> ended() override { return kj::mv(end); }
  void terminate() override { signalDescendants(SIGTERM); }

  kj::Promise<void> kill() override {
    killDescendants();
    // A child's end may bring its own children to us, and one may have been made while we looked: look again at each
    // end, and now and then.
    return reaper.whenChildless([]() { killDescendants(); }).exclusiveJoin(keepKilling());
  }

  kj::Promise<std::vector<kit::Check>> check() override {
    // There is no protection to check, and a person should be told just that.
    std::vector<kit::Check> checks;
    checks.push_back({"host", true, "no sandbox: the agent runs as you", "", false});
    return kj::mv(checks);
  }

 private:
  kj::Promise<void> keepKilling() {
    return timer.afterDelay(50 * kj::MILLISECONDS).then([this]() {
      killDescendants();
      return keepKilling();
    });
  }

  kj::Timer& timer;
  kit::Reaper reaper;
  kj::Promise<ProcessEnd> end = nullptr;
};

}  // namespace

kit::Profile profile() {
  kit::Profile profile;
  using kit::Need;
  for (auto need : {&profile.userNamespace, &profile.mountNamespace, &profile.pidNamespace, &profile.networkNamespace,
                    &profile.ipcNamespace}) {
    *need = Need::No;
  }
  profile.landlockFiles = false;
  profile.landlockScopes = Need::Wanted;
  profile.seccomp = kit::SeccompList::Operator;
  profile.denyUnixSockets = false;
  profile.maxOpenFiles = 1u << 20;  // the agent's as well: as many as the operator may have
  return profile;
}

kj::Own<kit::AgentTree> makeTree(kit::Context& context) { return kj::heap<HostTree>(context); }

}  // namespace oc::host
