// What a run reads and writes, by the kind of its sandbox.
#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "daemon/sandbox/grants.h"
#include "daemon/sandbox/paths_on_disk.h"
#include "parts.h"

namespace oc::explain {

namespace {

using Rules = std::map<std::string, std::string>;

// The deepest rule over the path; null: none is.
const std::pair<const std::string, std::string>* ruleOver(const std::string& path, const Rules& rules) {
  const std::pair<const std::string, std::string>* deepest = nullptr;
  for (auto& rule : rules) {
    if (isAtOrUnder(path, rule.first) && (deepest == nullptr || rule.first.size() > deepest->first.size())) deepest = &rule;
  }
  return deepest;
}

// ---- no sandbox

class OwnFiles final : public Files {
 public:
  Lines lines() const override {
    return {{"read", true, "everything that you can read", rule}, {"write", true, "everything that you can write", rule},
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
  SrtFiles(const PlannedRun& run, const config::SrtPolicy& policy, sandbox::SrtSettings settings, std::vector<std::string> notes)
      : run(run), policy(policy), rules(std::move(settings.rules)), allNotes(std::move(notes)) {
    allNotes.insert(allNotes.end(), settings.notes.begin(), settings.notes.end());
  }

  Lines lines() const override {
    Lines result = {{"read", true, "what you can read", "a process sandbox denies rather than allows"}};
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
  if (!parts.ok()) notes.push_back(fmt::format("on this machine a run would be refused: {} ({})", parts.refusal().what, parts.refusal().reason));
  // The policy is the same without srt, but for where its own parts lie.
  sandbox::SrtParts missing;
  missing.seccompHelper = "missing";
  auto settings = sandbox::makeSrtSettings(*setting.binding.srt, parts.ok() ? parts.value() : missing, setting.places, run.place(), setting.environ);
  if (!settings.ok()) return settings.refusal();
  return std::unique_ptr<Files>(std::make_unique<SrtFiles>(run, *setting.binding.srt, std::move(settings.value()), std::move(notes)));
}

// ---- a container

class ContainerFiles final : public Files {
 public:
  ContainerFiles(const PlannedRun& run, sandbox::Grants grants) : run(run) {
    for (auto& grant : grants.readAllow) readable.emplace(grant.path, grant.field);
    for (auto& grant : grants.write) writable.emplace(grant.path, grant.field);
    writable.emplace(run.place().runFiles, "the run's own directory, always");
    writable.emplace(run.home(), "the Work's own home, always");
    for (auto name : {"config", "hooks", "info"}) {
      protectedFiles.emplace(run.place().workspace + "/.git/" + name, "git would obey what is written here");
    }
  }

  Lines lines() const override {
    Lines result = {{"read", true, "the image's own files", "container.config.image"}};
    for (auto& [path, rule] : readable) result.push_back({"read", true, run.shown(path), rule});
    for (auto& [path, rule] : writable) result.push_back({"write", true, run.shown(path), rule});
    for (auto& [path, rule] : protectedFiles) result.push_back({"write", false, run.shown(path), rule});
    result.push_back({"write", true, "/tmp", "a file system in memory, the run's own"});
    result.push_back({"write", false, "the image's own files", "a container's root is read-only"});
    result.push_back({"socket", false, "every socket of this machine", "nothing of it is in a container but what is listed"});
    return result;
  }
  std::vector<std::string> notes() const override { return {}; }

  Answer mayRead(const std::string& path) const override {
    for (auto* rules : {&writable, &readable}) {
      if (auto* rule = ruleOver(path, *rules)) return {true, fmt::format("{} is mounted: {}", run.shown(rule->first), rule->second)};
    }
    return {false, "nothing of this machine is in a container but what read and write list; the image may have a file of that name"};
  }
  Answer mayWrite(const std::string& path) const override {
    if (auto* rule = ruleOver(path, protectedFiles)) return {false, fmt::format("{} is read-only: {}", run.shown(rule->first), rule->second)};
    auto* rule = ruleOver(path, writable);
    auto* read = ruleOver(path, readable);
    if (rule != nullptr && (read == nullptr || read->first.size() <= rule->first.size())) {
      return {true, fmt::format("{} is mounted to be written: {}", run.shown(rule->first), rule->second)};
    }
    if (read != nullptr) return {false, fmt::format("{} is mounted read-only: {}", run.shown(read->first), read->second)};
    return {false, "it is not in write"};
  }

 private:
  const PlannedRun& run;
  Rules readable, writable, protectedFiles;
};

OrRefusal<std::unique_ptr<Files>> explainContainer(const Setting& setting, const PlannedRun& run) {
  auto& policy = *setting.binding.container;
  config::SrtPolicy paths;
  paths.write = policy.write;
  paths.readAllow = policy.read;
  auto grants = sandbox::readGrants(paths, setting.places, run.place(), {});
  if (!grants.ok()) return grants.refusal();
  return std::unique_ptr<Files>(std::make_unique<ContainerFiles>(run, std::move(grants.value())));
}

}  // namespace

OrRefusal<std::unique_ptr<Files>> explainFiles(const Setting& setting, const PlannedRun& run) {
  if (setting.binding.srt) return explainSrt(setting, run);
  if (setting.binding.container) return explainContainer(setting, run);
  return std::unique_ptr<Files>(std::make_unique<OwnFiles>());
}

}  // namespace oc::explain
