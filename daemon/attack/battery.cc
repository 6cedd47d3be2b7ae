#include "battery.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "daemon/config/formats.h"
#include "daemon/explain/explain.h"
#include "daemon/work/agent.h"
#include "daemon/work/cgroup.h"
#include "daemon/work/container_plan.h"
#include "daemon/work/git_redirection.h"
#include "scene.h"

namespace oc::attack {

namespace {

constexpr size_t mostOutput = 1u << 20;
constexpr uint64_t slowest = 300;  // seconds for all attacks
// What can be tried on somebody's machine without harm to it.
constexpr uint64_t mostPids = 512, mostMemory = 256u << 20;

using Verdict = Row::Verdict;

struct Said {
  std::string against, name, verdict;
};

// "verdict \t against \t name", a line each. In a container it is whatever its image made of it, so nothing is taken
// for more than a text.
std::vector<Said> readLines(const std::string& text) {
  std::vector<Said> all;
  for (size_t at = 0; at < text.size() && all.size() < 1000;) {
    auto end = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, end - at);
    at = end + 1;
    auto one = line.find('\t'), two = one == std::string::npos ? one : line.find('\t', one + 1);
    if (two == std::string::npos) continue;
    auto clean = [](const std::string& part) { return shortened(printable(part), 300); };
    all.push_back(
        {clean(line.substr(one + 1, two - one - 1)), clean(line.substr(two + 1)), clean(line.substr(0, one))});
  }
  return all;
}

bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}

// What seemed to work is looked for where the operator would meet it.
std::string lookedAt(const std::string& verdict) {
  if (!verdict.starts_with("look ")) return verdict;
  return isThere(verdict.substr(5)) ? "through" : "held -";
}

class Listener final : public work::AgentListener {
 public:
  kj::Promise<void> whenOver() { return kj::mv(over.promise); }
  work::AgentEnd end;
  std::string lost;

 private:
  kj::Promise<void> onNote(uint64_t, const std::string& text) override {
    notes += text + "\n";
    return kj::READY_NOW;
  }
  kj::Promise<void> onSession(uint64_t, const std::string&) override { return kj::READY_NOW; }
  kj::Promise<void> onUsage(uint64_t, const state::Usage&) override { return kj::READY_NOW; }
  kj::Promise<void> onNetwork(uint64_t, const state::NetworkTotals&) override { return kj::READY_NOW; }
  kj::Promise<void> onDenied(uint64_t, const state::Denial&) override { return kj::READY_NOW; }
  kj::Promise<void> onEnded(uint64_t, const work::AgentEnd& ended) override {
    end = ended;
    over.fulfiller->fulfill();
    return kj::READY_NOW;
  }
  void onLost(const std::string& why) override {
    lost = why;
    over.fulfiller->fulfill();
  }

  std::string notes;
  kj::PromiseFulfillerPair<void> over = kj::newPromiseAndFulfiller<void>();
};

class Battery {
 public:
  Battery(const Setting& setting)
      : setting(setting),
        scene(setting.places, setting.own, setting.supervisor.programs() + "/open-conduit-attack"),
        explanation(nullptr) {}

  ~Battery() noexcept(false) { work::RunCgroups::remove(cgroups); }

  // Refusals come before anything has been tried.
  kj::Promise<OrRefusal<Report>> run() {
    auto made = explain::explain({setting.config, setting.binding, setting.places, setting.own});
    if (!made.ok()) return OrRefusal<Report>(made.refusal());
    explanation = std::move(made.value());
    return openEngine().then([this](Refusal refusal) -> kj::Promise<OrRefusal<Report>> {
      if (!refusal.reason.empty()) return OrRefusal<Report>(refusal);
      outside = readLines(scene.attackOutside(limits()));
      for (auto& said : outside) said.verdict = lookedAt(said.verdict);
      scene.putUpAgain();
      auto planned = plan();
      if (!planned.ok()) return OrRefusal<Report>(planned.refusal());
      return attackInside(std::move(planned.value()));
    });
  }

 private:
  TargetMap limits() const {
    TargetMap more;
    if (setting.binding.srt) return limitsOf(setting.binding.srt->limits);
    auto& container = setting.binding.container;
    if (container && container->pids != 0 && container->pids <= mostPids)
      more["pids"] = std::to_string(container->pids);
    if (container && !container->memory.empty()) {
      auto bytes = config::memoryBytes(container->memory);
      if (bytes <= mostMemory) more["memory"] = std::to_string(bytes);
    }
    return more;
  }

  static TargetMap limitsOf(const config::ResourceLimits& limits) {
    TargetMap more;
    if (limits.pids && *limits.pids <= mostPids)
      more["pids"] = std::to_string(*limits.pids + work::RunCgroups::ofTheSandbox);
    if (limits.memory.empty()) return more;
    auto bytes = config::memoryBytes(limits.memory);
    if (bytes <= mostMemory) more["memory"] = std::to_string(bytes);
    return more;
  }

  kj::Promise<Refusal> openEngine() {
    if (!setting.binding.container) return Refusal();
    auto& containers = setting.containers;
    auto where = containers.find(setting.config, setting.binding.container->context);
    if (!where.ok()) return where.refusal();
    engineSocket = where.value().socket;
    return containers.engines
        .openFor(scene.run(), where.value(), setting.binding.container->image, containers.gatewayImage())
        .then([this](OrRefusal<kj::Own<work::RunEngine>> opened) -> Refusal {
          if (!opened.ok()) return opened.refusal();
          engine = kj::mv(opened.value());
          return {};
        });
  }

  // As a run's, but for what is run.
  OrRefusal<work::Plan> plan() {
    state::WorkRow work;
    work.id = scene.work();
    work.scope = setting.binding.scope;
    work.binding = setting.binding.name;
    work.title = "attacks";
    work.branch = "main";
    work.workspaceMode = "clone";
    work.checkout = setting.binding.checkout;
    state::RunRow run;
    run.id = scene.run();
    run.work = work.id;
    work::AgentSetup agent;
    agent.command = scene.putIntoRun(limits());
    auto owner = setting.containers.engines.owner();
    // Where a descriptor or a variable of ours would reach the run, an attack finds it.
    auto own = setting.own;
    own["OPEN_CONDUIT_ATTACK_SECRET"] = scene.targets().at("marker");
    work::PlannedToolbelt toolbelt;
    if (setting.binding.srt) {
      auto folders = work::RunCgroups().make(run.id, setting.binding.srt->limits);
      if (!folders.ok()) return folders.refusal();
      cgroups = std::move(folders.value());
    }
    if (setting.binding.container) makePrivateDirectory(setting.places.runSecrets(run.id));
    auto made = work::makePlan({setting.config,
                                setting.binding,
                                work,
                                run,
                                setting.places,
                                agent,
                                {},
                                toolbelt,
                                engine.get(),
                                owner,
                                setting.containers.programs(),
                                cgroups},
                               own);
    if (!made.ok()) return made;
    auto& plan = made.value();
    if (!plan.settingsFile.empty()) writeFileAtomically(plan.settingsFile, plan.settings, 0600);
    if (setting.weaken) setting.weaken(plan);
    if (setting.binding.container) {
      auto refusal = work::writeAgentsFiles(setting.places, run.id, plan.environment, plan.command, {});
      if (refusal) return *refusal;
    }
    return made;
  }

  work::AgentSpec agentSpec(const work::Plan& plan) const {
    auto& places = setting.places;
    work::AgentSpec spec;
    spec.run = scene.run();
    spec.provider = plan.provider;
    spec.job = plan.job;
    spec.hidden = plan.hidden;
    spec.kept = plan.kept;
    spec.command = plan.command;
    spec.environment.assign(plan.environment.begin(), plan.environment.end());
    spec.directory = plan.directory;
    spec.socket = places.runSocket(scene.run());
    spec.log = places.runLog(scene.run());
    spec.networkLog = places.runNetworkLog(scene.run());
    spec.logLimit = mostOutput;
    spec.timeoutSeconds = slowest;
    spec.graceSeconds = 1;
    return spec;
  }

  kj::Promise<OrRefusal<Report>> attackInside(work::Plan plan) {
    leaveSomethingOpen();
    began = std::chrono::steady_clock::now();
    auto key = SecretBytes::random(32);
    auto spec = agentSpec(plan);
    auto started = plan.provider == "docker"
                       ? work::Agent::startContainer(setting.supervisor, kj::mv(engine), kj::mv(plan.container),
                                                     kj::mv(spec), key, listener, [](pid_t, pid_t) {})
                       : work::Agent::start(setting.supervisor, kj::mv(spec), key, listener, [](pid_t, pid_t) {});
    return started.then([this](OrRefusal<kj::Own<work::Agent>> result) -> kj::Promise<OrRefusal<Report>> {
      if (!result.ok())
        return removeContainers().then([refusal = result.refusal()]() -> OrRefusal<Report> { return refusal; });
      agent = kj::mv(result.value());
      return listener.whenOver()
          .then([this]() { return agent->finish(setting.supervisor.timer()); })
          .then([this]() { return removeContainers(); })
          .then([this]() {
            if (setting.binding.container && !setting.keepRedirection) work::removeGitRedirection(scene.workspace());
            return judge();
          });
    });
  }

  kj::Promise<void> removeContainers() {
    if (engineSocket.empty()) return kj::READY_NOW;
    return setting.containers.engines.remove(engineSocket, scene.run()).ignoreResult();
  }

  // Not closed on exec, as a careless library leaves them.
  void leaveSomethingOpen() {
    auto own = scene.targets().at("own");
    left[0] = kj::AutoCloseFd(::open(own.c_str(), O_RDONLY | O_DIRECTORY));
    left[1] = kj::AutoCloseFd(::open((own + "/secret").c_str(), O_RDONLY));
    setenv("OPEN_CONDUIT_ATTACK_SECRET", scene.targets().at("marker").c_str(), 1);
  }

  OrRefusal<Report> judge() {
    auto printed = readFile(setting.places.runLog(scene.run()), 2 * mostOutput);
    auto said = readLines(printed);
    if (said.empty()) {
      return Refusal{"sandbox_unavailable",
                     "the attacks did not start in the sandbox: " + listener.lost + shortened(printable(printed), 1024),
                     "open-conduit doctor says what this machine lacks"};
    }
    Report report;
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    std::map<std::string, std::string> inside;
    for (auto& line : said) inside[line.name] = line.verdict;
    for (auto& control : outside) {
      auto found = inside.find(control.name);
      auto verdict = found == inside.end() ? "failed it did not come to it" : found->second;
      bool grantedAtItsPlace = verdict.starts_with("look ") && mayWrite(verdict.substr(5));
      Row row{control.against, control.name, control.verdict, lookedAt(verdict), Verdict::Failed};
      row.verdict = verdictOn(row, grantedAtItsPlace);
      report.rows.push_back(row);
    }
    return report;
  }

  Verdict verdictOn(const Row& row, bool grantedAtItsPlace) const {
    if (row.inside == "through")
      return grantedAtItsPlace || isGranted(row.against) ? Verdict::Granted : Verdict::Through;
    if (row.outside == "absent" || row.inside == "absent") return Verdict::Absent;
    if (!row.inside.starts_with("held ")) return Verdict::Failed;
    return row.outside == "through" ? Verdict::Held : Verdict::Unproven;
  }

  bool mayRead(const std::string& path) const {
    auto answer = explanation->mayRead(path);
    return answer.ok() && answer.value().yes;
  }
  bool mayWrite(const std::string& path) const {
    auto answer = explanation->mayWrite(path);
    return answer.ok() && answer.value().yes;
  }
  bool mayReach(const std::string& host) const {
    auto answer = explanation->mayReach(host);
    return answer.ok() && answer.value().yes;
  }
  std::string target(const char* name) const {
    auto found = scene.targets().find(name);
    return found == scene.targets().end() ? "" : found->second;
  }

  // What the policy says of it.
  bool isGranted(const std::string& against) const {
    auto outsideDir = scene.outside();
    if (against == "read") return mayRead(outsideDir + "/secret");
    if (against == "write") return mayWrite(outsideDir + "/to-append");
    if (against == "credential") return mayRead(target("credential"));
    // Whoever may read a named pipe's directory can write to the pipe: no mount forbids it.
    if (against == "pipe") return mayRead(outsideDir + "/pipe");
    bool allSockets = setting.binding.srt && setting.binding.srt->allUnixSockets;
    if (against == "plain-socket") return allSockets && mayRead(outsideDir + "/socket");
    if (against == "proxy") {
      for (std::string host : {std::string("127.0.0.1"), std::string("localhost"), target("address4")}) {
        if (!host.empty() && mayReach(host + ":" + target("tcp"))) return true;
      }
    }
    return false;
  }

  const Setting& setting;
  Scene scene;
  std::unique_ptr<explain::Explanation> explanation;
  std::string engineSocket;
  kj::Own<work::RunEngine> engine;
  std::vector<Said> outside;
  Listener listener;
  kj::Own<work::Agent> agent;
  kj::AutoCloseFd left[2];
  std::vector<std::string> cgroups;
  std::chrono::steady_clock::time_point began;
};

}  // namespace

const char* toText(Row::Verdict verdict) {
  switch (verdict) {
    case Verdict::Held: return "held";
    case Verdict::Through: return "THROUGH";
    case Verdict::Granted: return "granted";
    case Verdict::Unproven: return "unproven";
    case Verdict::Absent: return "absent";
    case Verdict::Failed: return "FAILED";
  }
  return "";
}

size_t Report::count(Row::Verdict verdict) const {
  return static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [verdict](auto& row) { return row.verdict == verdict; }));
}

bool Report::held() const {
  return count(Verdict::Through) == 0 && count(Verdict::Failed) == 0 && count(Verdict::Held) > 0;
}

kj::Promise<OrRefusal<Report>> runBattery(const Setting& setting) {
  if (setting.binding.sandboxKind() == "none") {
    return OrRefusal<Report>(
        Refusal{"attack_unsandboxed",
                fmt::format("the binding {} has no sandbox, so there is nothing to try", setting.binding.id()),
                "name a binding with sandbox or container"});
  }
  return kj::evalNow([&]() {
    auto battery = kj::heap<Battery>(setting);
    auto& ref = *battery;
    return ref.run().attach(kj::mv(battery));
  });
}

}  // namespace oc::attack
