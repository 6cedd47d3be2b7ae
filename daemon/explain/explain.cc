#include "explain.h"

#include <fmt/format.h>

#include <optional>

#include "base/host_pattern.h"
#include "base/paths.h"
#include "base/procfs.h"
#include "base/text.h"
#include "daemon/sandbox/run_place.h"
#include "parts.h"

namespace oc::explain {

namespace {

constexpr const char* workId = "WORK";
constexpr const char* runId = "RUN";
constexpr uint16_t httpsPort = 443;

std::string seconds(uint64_t value) { return value == 0 ? "none" : fmt::format("{} s", value); }

const std::vector<HostPattern>* hostsOf(const config::Binding& binding) {
  if (binding.srt) return &binding.srt->networkAllow;
  if (binding.container) return &binding.container->networkAllow;
  return nullptr;
}

class Explained final : public Explanation {
 public:
  explicit Explained(const Setting& setting) : setting(setting), run(setting) {}

  // Nothing when it was made.
  std::optional<Refusal> make() {
    auto made = explainFiles(setting, run);
    if (!made.ok()) return made.refusal();
    files = std::move(made.value());
    auto authority = explainAuthority(setting);
    if (!authority.ok()) return authority.refusal();
    all = files->lines();
    allNotes = files->notes();
    addHosts();
    all.insert(all.end(), authority.value().begin(), authority.value().end());
    addContainer();
    addWorkspace();
    addLimits();
    addSandboxLimits();
    return std::nullopt;
  }

  const std::vector<Line>& lines() const override { return all; }
  const std::vector<std::string>& notes() const override { return allNotes; }

  OrRefusal<Answer> mayRead(const std::string& path) const override {
    return about(path, [this](const std::string& absolute) { return files->mayRead(absolute); });
  }
  OrRefusal<Answer> mayWrite(const std::string& path) const override {
    return about(path, [this](const std::string& absolute) { return files->mayWrite(absolute); });
  }

  OrRefusal<Answer> mayReach(const std::string& host) const override {
    std::string why;
    auto asked = parseHostPattern(host, why);
    if (!asked || asked->subdomains) {
      return Refusal{
          "host_invalid",
          fmt::format("\"{}\" is no host: {}", shortened(printable(host), 128), asked ? "it is a pattern" : why),
          "write host or host:port"};
    }
    auto* allowed = hostsOf(setting.binding);
    if (allowed == nullptr) return Answer{true, "there is no sandbox: whatever you can reach"};
    auto port = asked->port.value_or(httpsPort);
    for (size_t i = 0; i < allowed->size(); ++i) {
      if ((*allowed)[i].matches(asked->host, port)) {
        return Answer{true, fmt::format("network.allow[{}]: {}", i, (*allowed)[i].toString())};
      }
    }
    return Answer{false, fmt::format("no entry of network.allow is {} at port {}", printable(asked->host), port)};
  }

  Answer mayCall(const std::string& operation) const override { return explain::mayCall(setting, operation); }

 private:
  template <typename Ask>
  OrRefusal<Answer> about(const std::string& path, Ask&& ask) const {
    auto absolute = run.absolute(path);
    if (!absolute) {
      return Refusal{"path_invalid", fmt::format("\"{}\" is no path of a policy", shortened(printable(path), 128)),
                     "write /…, ~/…, {workspace}… or {run}…"};
    }
    return ask(*absolute);
  }

  void addHosts() {
    auto* allowed = hostsOf(setting.binding);
    if (allowed == nullptr) {
      all.push_back({"host", true, "every host that you can reach", "neither sandbox nor container"});
      return;
    }
    for (size_t i = 0; i < allowed->size(); ++i) {
      auto& host = (*allowed)[i];
      all.push_back(
          {"host", true, host.toString() + (host.port ? "" : " (any port)"), fmt::format("network.allow[{}]", i)});
    }
    if (setting.binding.container) {
      auto& ranges = setting.binding.container->networkPrivate;
      for (size_t i = 0; i < ranges.size(); ++i) {
        all.push_back({"host", true, "names that resolve into " + ranges[i], fmt::format("network.private[{}]", i)});
      }
      if (ranges.empty())
        all.push_back({"host", false, "names that resolve to private addresses", "network.private lists none"});
    }
    all.push_back({"host", false, "everything else", "network.allow"});
  }

  void addContainer() {
    if (!setting.binding.container) return;
    auto& policy = *setting.binding.container;
    auto fact = [this](std::string what, std::string rule) {
      all.push_back({"container", true, std::move(what), std::move(rule)});
    };
    fact("image " + policy.image, "container.config.image");
    fact("context " + policy.context, "container.config.provider.context");
    fact("your uid and gid, no capabilities, no new privileges, a read-only root", "always");
    fact("no network but the gateway's proxy, to the hosts above", "always");
    fact(fmt::format("at most {} processes", policy.pids), "limits.pids");
    if (policy.cpus) fact(fmt::format("at most {} processors", *policy.cpus), "limits.cpus");
    if (!policy.memory.empty()) fact("at most " + policy.memory + " of memory", "limits.memory");
  }

  void addWorkspace() {
    auto& binding = setting.binding;
    if (!binding.hasResource) {
      all.push_back({"workspace", true, "an empty directory of its own", "no resource"});
      return;
    }
    bool clone = binding.resourceMode == "clone";
    all.push_back({"workspace", true,
                   fmt::format("{} {}", clone ? "a clone of" : "a worktree of", run.shown(binding.checkout)),
                   "resource"});
    all.push_back({"workspace", true, fmt::format("commits on {} are saved to it", binding.branch), "config.branch"});
    if (!binding.setup.empty())
      all.push_back({"workspace", true, "a command of yours first: " + binding.setup.front(), "resource.config.setup"});
  }

  void addSandboxLimits() {
    if (!setting.binding.srt) return;
    auto& limits = setting.binding.srt->limits;
    auto fact = [this](std::string what, std::string rule) {
      all.push_back({"limit", true, std::move(what), std::move(rule)});
    };
    if (limits.pids) fact(fmt::format("at most {} processes", *limits.pids), "limits.pids");
    if (limits.cpus) fact(fmt::format("at most {} processors", *limits.cpus), "limits.cpus");
    if (!limits.memory.empty()) fact("at most " + limits.memory + " of memory", "limits.memory");
  }

  void addLimits() {
    auto& binding = setting.binding;
    all.push_back({"limit", true, "time: " + seconds(binding.timeoutSeconds), "timeout"});
    all.push_back({"limit", true, "time without output: " + seconds(binding.stallSeconds), "stall_timeout"});
    all.push_back(
        {"limit", true,
         fmt::format("runs at once: {}", binding.maxRuns == 0 ? setting.config.settings.maxRuns : binding.maxRuns),
         binding.maxRuns == 0 ? "settings.max_runs" : "max_runs"});
    if (binding.maxTurns != 0) all.push_back({"limit", true, fmt::format("turns: {}", binding.maxTurns), "max_turns"});
    if (binding.maxBudgetUsd > 0)
      all.push_back({"limit", true, fmt::format("US dollars: {}", binding.maxBudgetUsd), "max_budget_usd"});
  }

  Setting setting;
  PlannedRun run;
  std::unique_ptr<Files> files;
  Lines all;
  std::vector<std::string> allNotes;
};

}  // namespace

PlannedRun::PlannedRun(const Setting& setting)
    : places(setting.places),
      run(sandbox::makeRunPlace(setting.config, setting.places, workId, runId, setting.environ)) {
  run.toolbeltSocket = places.runToolbelt(runId);
  run.toCome = true;
  run.programs = ownDirectory();
}

std::string PlannedRun::home() const { return places.workHome(workId); }

std::string PlannedRun::shown(const std::string& path) const {
  const std::pair<std::string, const char*> names[] = {{run.workspace, "{workspace}"},
                                                       {run.runFiles, "{run}"},
                                                       {home(), "{home}"},
                                                       {run.toolbeltSocket, "{toolbelt}"},
                                                       {places.home, "~"}};
  for (auto& [directory, name] : names) {
    if (!directory.empty() && isAtOrUnder(path, directory)) return printable(name + path.substr(directory.size()));
  }
  return printable(path);
}

std::optional<std::string> PlannedRun::absolute(const std::string& path) const {
  if (hasControlCharacters(path)) return std::nullopt;
  return expandPath(path, places.home, {{"workspace", run.workspace}, {"run", run.runFiles}});
}

OrRefusal<std::unique_ptr<Explanation>> explain(const Setting& setting) {
  auto made = std::make_unique<Explained>(setting);
  if (auto refusal = made->make()) return *refusal;
  return std::unique_ptr<Explanation>(std::move(made));
}

}  // namespace oc::explain
