#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/host_pattern.h"
#include "base/paths.h"
#include "format_parts.h"
#include "rules.h"

namespace oc::config {

namespace {

#ifdef __linux__
constexpr bool allowsSocketsByPath = false;
#else
constexpr bool allowsSocketsByPath = true;  // Seatbelt can
#endif

class SandboxRules {
 public:
  explicit SandboxRules(const BindingContext& context)
      : context(context), binding(context.binding), report(context.report) {}

  void check() {
    checkConflict();
    if (!context.isSandboxed()) return;
    checkWorkspace();
    if (auto policy = context.srt()) checkSrt(*policy);
    if (auto policy = context.docker()) checkDocker(*policy);
  }

 private:
  void checkConflict() {
    auto container = binding.field("container");
    if (!binding.field("sandbox") || !container) return;
    report.error(*container, "a binding has a sandbox or a container, never both", "delete one of the two",
                 "sandbox_conflict");
  }

  // Both kinds write to a repository of their own only, and nothing of the agent's is run on the host.
  void checkWorkspace() {
    constexpr const char* reason = "sandbox_workspace";
    constexpr const char* fix = "write \"clone\"";
    auto resource = binding.field("resource");
    if (!resource) {
      report.error(binding, "a sandboxed binding needs a git resource in clone mode",
                   "add \"resource\": {\"provider\": \"git\", \"config\": {\"checkout\": \"/…\", \"mode\": \"clone\"}}",
                   reason);
      return;
    }
    auto isWorktree = [](const std::optional<Spot>& mode) {
      return mode && mode->isString() && mode->node->text == "worktree";
    };
    auto mode = resource->field("config", "mode"), workspaceMode = binding.field("config", "workspace_mode");
    constexpr const char* why = "in a worktree, a sandboxed agent would write to the checkout's own .git";
    if (isWorktree(mode)) report.error(*mode, why, fix, reason);
    if (isWorktree(workspaceMode)) report.error(*workspaceMode, why, fix, reason);
    auto setup = resource->field("config", "setup");
    if (setup && !setup->node->items.empty()) {
      report.error(*setup, "setup would run on your machine, in files that the agent wrote",
                   "delete it; let the agent or the command do it inside", reason);
    }
  }

  void checkSrt(const Spot& policy) {
    auto sockets = policy.field("sockets");
    if (!allowsSocketsByPath && sockets && !sockets->node->items.empty() && policy.text("unix_sockets") != "all") {
      report.error(*sockets, "on Linux, srt can't allow a socket by its path",
                   "add \"unix_sockets\": \"all\"; sockets that lead out of the sandbox are hidden then");
    }
    for (auto& entry : stringsOf(policy.field("network", "allow"))) checkSrtHost(entry);
    if (auto only = policy.field("read", "only")) checkStrict(policy, *only);
  }

  void checkStrict(const Spot& policy, const Spot& only) {
    for (auto other : {"deny", "allow"}) {
      if (auto list = policy.field("read", other)) {
        report.error(*list, "only lists all that is readable, so there is nothing to deny or to except",
                     "delete this list, or only");
      }
    }
    for (auto& entry : stringsOf(only)) {
      if (hostPath(entry.node->text, context.all.environment) == "/") {
        report.error(entry, "this is everything, and no strict mode",
                     "list what is needed, or write \"deny\" in place of \"only\"");
      }
    }
  }

  // srt has its own mind about what is too broad; with such an entry it doesn't start.
  void checkSrtHost(const Spot& entry) {
    std::string why;
    auto pattern = parseHostPattern(entry.node->text, why);
    if (!pattern) return;
    bool hasDot = pattern->host.find('.') != std::string::npos, isIpv6 = pattern->host.find(':') != std::string::npos;
    bool local = pattern->host == "localhost" && !pattern->subdomains;
    if (hasDot || isIpv6 || local) return;
    report.error(entry, fmt::format("srt takes no {} of a single word", pattern->subdomains ? "domain" : "host"),
                 pattern->subdomains ? "name the domains under it, as in *.example.com" : "write the host's full name");
  }

  void checkDocker(const Spot& policy) {
    for (auto name : {"write", "read"}) {
      for (auto& entry : stringsOf(policy.field(name))) checkMount(entry);
    }
    for (auto& entry : stringsOf(policy.field("write"))) checkOperatorsClaude(entry);
    if (auto seed = binding.field("config", "home_seed"); seed && seed->isString()) checkSeed(*seed);
  }

  void checkOperatorsClaude(const Spot& entry) {
    auto& environment = context.all.environment;
    auto path = hostPath(entry.node->text, environment);
    // All of a home is told as such.
    if (!path || isAtOrUnder(environment.home, *path)) return;
    for (auto& claude :
         {environment.home + "/.claude", environment.home + "/.claude.json", environment.claudeConfigDir}) {
      if (claude.empty() || (!isAtOrUnder(claude, *path) && !isAtOrUnder(*path, claude))) continue;
      report.error(entry,
                   fmt::format("it lies in or holds {}, your own claude's, whose hooks would run as you", claude),
                   "delete it; a container's claude has a home of its own", "sandbox_denied");
      return;
    }
  }

  void checkSeed(const Spot& seed) {
    auto path = hostPath(seed.node->text, context.all.environment);
    if (!path) return;
    constexpr const char* fix = "give it a folder of its own, with nothing in it but what an agent may read";
    for (auto& own : context.all.environment.own) {
      bool within = isAtOrUnder(*path, own);
      if (!within && !isAtOrUnder(own, *path)) continue;
      report.error(seed, fmt::format("it {} {}, which is Open Conduit's own", within ? "lies in" : "holds", own), fix,
                   "sandbox_denied");
      return;
    }
    for (auto system : {"/proc", "/sys", "/dev"}) {
      if (isAtOrUnder(*path, system))
        report.error(seed, "the machine's /proc, /sys and /dev are in no container's home", fix, "sandbox_denied");
    }
  }

  void checkMount(const Spot& entry) {
    auto path = hostPath(entry.node->text, context.all.environment);
    if (!path) return;
    constexpr const char* sockets[] = {"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
                                       "/run/podman/podman.sock", "/var/run/podman/podman.sock"};
    for (auto socket : sockets) {
      if (*path == socket)
        report.error(entry, "an engine's socket in a container is the whole machine in it", "delete it");
    }
    if (*path == "/") report.error(entry, "the whole machine can't be mounted", "list the directories that are needed");
    if (*path == "/run" || *path == "/var/run") {
      report.error(entry, "the sockets of the machine's services lie in it", "list what is needed in it");
    }
    for (auto system : {"/proc", "/sys", "/dev"}) {
      if (isAtOrUnder(*path, system)) {
        report.error(entry, "a container has its own /proc, /sys and /dev", "delete it");
      }
    }
    for (auto& own : context.all.environment.own) {
      bool within = isAtOrUnder(*path, own);
      if (*path == "/" || (!within && !isAtOrUnder(own, *path))) continue;
      report.error(entry, fmt::format("it {} {}, which is Open Conduit's own", within ? "lies in" : "holds", own),
                   within ? "delete it" : "list the directories beneath it that are needed", "sandbox_denied");
      return;
    }
  }

  const BindingContext& context;
  const Spot& binding;
  Report& report;
};

}  // namespace

std::optional<std::string> hostPath(const std::string& entry, const Environment& environment) {
  if (entry.empty() || entry[0] == '{') return std::nullopt;
  return expandPath(entry, environment.home, {});
}

void checkSandbox(const BindingContext& context) { SandboxRules(context).check(); }

}  // namespace oc::config
