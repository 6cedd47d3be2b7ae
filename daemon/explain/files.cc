// What a run reads and writes, by the kind of its sandbox.
#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "daemon/sandbox/container.h"
#include "daemon/sandbox/paths_on_disk.h"
#include "daemon/sandbox/startup_writes.h"
#include "daemon/work/written_by_agents.h"
#include "parts.h"

namespace oc::explain {

namespace {

using Rules = std::map<std::string, std::string>;

// The deepest rule over the path; null: none is.
const std::pair<const std::string, std::string>* ruleOver(const std::string& path, const Rules& rules) {
  const std::pair<const std::string, std::string>* deepest = nullptr;
  for (auto& rule : rules) {
    if (isAtOrUnder(path, rule.first) && (deepest == nullptr || rule.first.size() > deepest->first.size()))
      deepest = &rule;
  }
  return deepest;
}

// ---- no sandbox

class OwnFiles final : public Files {
 public:
  Lines lines() const override {
    return {{"read", true, "everything that you can read", rule},
            {"write", true, "everything that you can write", rule},
            {"socket", true, "every socket that you can use", rule}};
  }
  std::vector<std::string> notes() const override {
    return {"without a sandbox, a run can read Open Conduit's state and its operator token, and so command the daemon"};
  }
  Answer mayRead(const std::string&) const override { return {true, "there is no sandbox: whatever you can read"}; }
  Answer mayWrite(const std::string&) const override { return {true, "there is no sandbox: whatever you can write"}; }

 private:
  static constexpr const char* rule = "neither sandbox nor container";
};

// ---- srt

class SrtFiles final : public Files {
 public:
  SrtFiles(const PlannedRun& run, const config::SrtPolicy& policy, sandbox::SrtSettings settings,
           std::vector<std::string> notes)
      : run(run), policy(policy), rules(std::move(settings.rules)), allNotes(std::move(notes)) {
    allNotes.insert(allNotes.end(), settings.notes.begin(), settings.notes.end());
  }

  Lines lines() const override {
    Lines result;
    if (!policy.readOnly)
      result.push_back({"read", true, "what you can read", "a process sandbox denies rather than allows"});
    add(result, "read", false, rules.denyRead);
    add(result, "read", true, rules.allowRead);
    add(result, "write", true, rules.allowWrite);
    add(result, "write", false, rules.denyWrite);
    if (!policy.allUnixSockets) {
      result.push_back({"socket", false, "every Unix socket", "unix_sockets is not \"all\""});
    } else {
      result.push_back({"socket", true, "every Unix socket that can be read", "unix_sockets"});
    }
    return result;
  }
  std::vector<std::string> notes() const override { return allNotes; }

  // The path as it is named and where it leads: the kernel follows links, the sandbox's mounts have both.
  Answer mayRead(const std::string& path) const override {
    if (isOwnDevice(path)) return ownDevice;
    for (auto& name : {path, sandbox::resolved(path)}) {
      auto* denied = ruleOver(name, rules.denyRead);
      if (denied == nullptr) continue;
      auto* allowed = ruleOver(name, rules.allowRead);
      if (allowed == nullptr || allowed->first.size() < denied->first.size()) {
        return {false, fmt::format("{} is denied: {}", run.shown(denied->first), denied->second)};
      }
    }
    if (auto* allowed = ruleOver(sandbox::resolved(path), rules.allowRead)) {
      return {true, fmt::format("{} is allowed: {}", run.shown(allowed->first), allowed->second)};
    }
    return {true, "nothing denies it: whatever you can read"};
  }

  Answer mayWrite(const std::string& path) const override {
    if (isOwnDevice(path)) return ownDevice;
    auto real = sandbox::resolved(path);
    if (auto* denied = ruleOver(real, rules.denyWrite)) {
      return {false, fmt::format("{} is denied: {}", run.shown(denied->first), denied->second)};
    }
    auto* allowed = ruleOver(real, rules.allowWrite);
    if (allowed == nullptr) return {false, "it is not in write"};
    auto read = mayRead(path);
    if (!read.yes) return {false, fmt::format("it can't be read, and write lifts no read denial: {}", read.why)};
    return {true, fmt::format("{} is granted: {}", run.shown(allowed->first), allowed->second)};
  }

 private:
  // bubblewrap mounts a /dev that has these and nothing of the machine's.
  static bool isOwnDevice(const std::string& path) {
    if (isAtOrUnder(path, "/dev/shm")) return true;
    for (auto name : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
      if (path == name) return true;
    }
    return false;
  }
  const Answer ownDevice = {true, "each run has a /dev of its own, and it is in it"};

  void add(Lines& to, const char* area, bool allowed, const Rules& from) const {
    for (auto& [path, rule] : from) to.push_back({area, allowed, run.shown(path), rule});
  }

  const PlannedRun& run;
  const config::SrtPolicy& policy;
  sandbox::SrtRules rules;
  std::vector<std::string> allNotes;
};

OrRefusal<std::unique_ptr<Files>> explainSrt(const Setting& setting, const PlannedRun& run) {
  auto found = setting.config.settings.extensions.find("srt");
  auto extension = found == setting.config.settings.extensions.end() ? config::ExtensionSettings() : found->second;
  std::vector<std::string> notes;
  auto parts = sandbox::findSrt(extension, setting.places);
  if (!parts.ok())
    notes.push_back(
        fmt::format("on this machine a run would be refused: {} ({})", parts.refusal().what, parts.refusal().reason));
  if (parts.ok()) {
    if (auto refusal = work::refuseTurnedPrograms(setting.config, setting.places, parts.value().names()))
      return *refusal;
  }
  if (setting.binding.srt->limits.any())
    notes.push_back(
        "limits are kept by control groups, which the daemon has to have been given: open-conduit doctor says whether it "
        "was; a run is refused where it was not");
  // The policy is the same without srt, but for where its own parts lie.
  sandbox::SrtParts missing;
  missing.seccompHelper = "missing";
  auto settings = sandbox::makeSrtSettings(*setting.binding.srt, parts.ok() ? parts.value() : missing, setting.places,
                                           run.place(), setting.environ);
  if (!settings.ok()) return settings.refusal();
  if (auto refusal = sandbox::refuseStartupWrites(settings.value().rules.allowWrite, setting.places)) return *refusal;
  return std::unique_ptr<Files>(
      std::make_unique<SrtFiles>(run, *setting.binding.srt, std::move(settings.value()), std::move(notes)));
}

// ---- a container

class ContainerFiles final : public Files {
 public:
  ContainerFiles(const PlannedRun& run, sandbox::ContainerSettings settings)
      : run(run), allNotes(std::move(settings.notes)) {
    for (auto& mount : settings.mounts) mounts.emplace(mount.target, std::move(mount));
  }

  Lines lines() const override {
    Lines result = {{"read", true, "the image's own files", "container.config.image"}};
    for (auto& [target, mount] : mounts) {
      auto* above = mountOver(target.substr(0, target.rfind('/')));
      if (mount.writable) {
        result.push_back({"write", true, run.shown(target), mount.rule});
      } else if (above != nullptr && above->writable) {
        result.push_back({"write", false, run.shown(target), mount.rule});
      } else {
        result.push_back({"read", true, run.shown(target), mount.rule});
      }
    }
    result.push_back({"write", true, "/tmp", "a file system in memory, the run's own"});
    result.push_back({"write", false, "the image's own files", "a container's root is read-only"});
    result.push_back(
        {"socket", false, "every socket of this machine", "nothing of it is in a container but what is listed"});
    return result;
  }
  std::vector<std::string> notes() const override { return allNotes; }

  Answer mayRead(const std::string& path) const override {
    if (auto* mount = mountOver(path))
      return {true, fmt::format("{} is mounted: {}", run.shown(mount->target), mount->rule)};
    return {
        false,
        "nothing of this machine is in a container but what read and write list; the image may have a file of that name"};
  }
  Answer mayWrite(const std::string& path) const override {
    auto* mount = mountOver(path);
    if (mount == nullptr) return {false, "it is not in write"};
    return {mount->writable, fmt::format("{} is mounted {}: {}", run.shown(mount->target),
                                         mount->writable ? "to be written" : "read-only", mount->rule)};
  }

 private:
  // The deepest one decides.
  const sandbox::ContainerMount* mountOver(const std::string& path) const {
    const sandbox::ContainerMount* deepest = nullptr;
    for (auto& [target, mount] : mounts) {
      if (isAtOrUnder(path, target) && (deepest == nullptr || target.size() > deepest->target.size())) deepest = &mount;
    }
    return deepest;
  }

  const PlannedRun& run;
  std::map<std::string, sandbox::ContainerMount> mounts;
  std::vector<std::string> allNotes;
};

OrRefusal<std::unique_ptr<Files>> explainContainer(const Setting& setting, const PlannedRun& run) {
  // Where the Engine listens and our programs are, the run's own refusal tells; neither is ever granted.
  sandbox::ContainerPlace place{run.place(), run.home(), "", "/open-conduit", "/var/run/docker.sock", {}};
  auto settings = sandbox::makeContainerSettings(*setting.binding.container, setting.places, place, setting.environ);
  if (!settings.ok()) return settings.refusal();
  if (auto refusal = sandbox::refuseStartupWrites(sandbox::writableOf(settings.value()), setting.places))
    return *refusal;
  return std::unique_ptr<Files>(std::make_unique<ContainerFiles>(run, std::move(settings.value())));
}

}  // namespace

OrRefusal<std::unique_ptr<Files>> explainFiles(const Setting& setting, const PlannedRun& run) {
  if (setting.binding.srt) return explainSrt(setting, run);
  if (setting.binding.container) return explainContainer(setting, run);
  return std::unique_ptr<Files>(std::make_unique<OwnFiles>());
}

}  // namespace oc::explain
