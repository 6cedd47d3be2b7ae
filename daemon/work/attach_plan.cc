#include "attach_plan.h"

#include <fmt/format.h>
#include <kj/exception.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/host_pattern.h"
#include "base/paths.h"
#include "base/text.h"
#include "container_plan.h"

namespace oc::work {

namespace {

constexpr const char* toolbeltToken = "OPEN_CONDUIT_TOOLBELT_TOKEN";

Refusal denied(const std::string& path, const std::string& why) {
  return {"sandbox_denied", fmt::format("{} {}", printable(path), why),
          "let a run of the Work begin, which is planned anew: open-conduit work say"};
}

std::string resolved(const std::string& path) {
  try {
    return resolvePath(path);
  } catch (const kj::Exception&) {
    return path;
  }
}

class Maker {
 public:
  Maker(const AttachPlanRequest& request, const Environment& own)
      : request(request), own(own), box(request.pinned.document.at("sandbox")) {}

  OrRefusal<AttachPlan> make() {
    if (auto refusal = takeMounts()) return *refusal;
    if (auto refusal = takeNetwork()) return *refusal;
    takeLimits();
    settings.directory = request.pinned.document.at("directory");
    auto setup = setUpAttached(request.pinned.executor(), request.work, request.id, request.places);
    AttachPlan plan;
    plan.files = setup.files;
    auto& spec = plan.container;
    for (auto& [name, value] : makeVariables(setup)) spec.environment.emplace_back(name, value);
    spec.owner = request.owner;
    spec.run = request.id;
    spec.role = "attach";
    spec.planSha256 = request.pinned.sha256;
    spec.image = request.engine.image.id;
    spec.gatewayImage = request.engine.gatewayImage.id;
    spec.command = containerEntry(settings, false, !request.secretVariables.empty(), false);
    spec.command.insert(spec.command.end(), setup.command.begin(), setup.command.end());
    spec.user = containerUser(request.engine.engine);
    spec.hostname = request.work.id;
    spec.tty = true;
    spec.columns = request.terminal.size.columns;
    spec.rows = request.terminal.size.rows;
    spec.settings = std::move(settings);
    return plan;
  }

 private:
  // What was the run's own becomes the attachment's own. What was granted has to be the same place: a link that came on
  // the way since would lead elsewhere.
  std::optional<Refusal> takeMounts() {
    auto& places = request.places;
    auto runs = places.runFiles(request.pinned.run);
    for (auto& entry : box.at("mounts")) {
      std::string source = entry.at("source"), target = entry.at("target");
      if (target == sandbox::containerSecrets || target == sandbox::containerProgram || isAtOrUnder(target, runs))
        continue;
      if (resolved(source) != source)
        return denied(source, "is a link by now, and was none when the Work's last run was planned");
      if (auto refusal = mount(source, target, entry.at("writable"))) return refusal;
    }
    auto files = places.runFiles(request.id);
    if (auto refusal = mount(resolved(files), files, true)) return refusal;
    if (!request.secretVariables.empty()) {
      if (auto refusal = mount(resolved(places.runSecrets(request.id)), sandbox::containerSecrets, true))
        return refusal;
    }
    return mount(resolved(request.programs + "/open-conduit-toolbelt"), sandbox::containerProgram, false);
  }

  std::optional<Refusal> mount(const std::string& source, const std::string& target, bool writable) {
    struct stat stats;
    if (stat(source.c_str(), &stats) < 0)
      return denied(source, fmt::format("cannot be mounted any more: {}", strerror(errno)));
    settings.mounts.push_back({source, target, writable, stats.st_dev, stats.st_ino});
    return std::nullopt;
  }

  std::optional<Refusal> takeNetwork() {
    auto& network = box.at("network");
    for (std::string text : network.at("allow")) {
      std::string why;
      auto pattern = parseHostPattern(text, why);
      if (!pattern) return denied(text, "is no host that can be allowed: " + why);
      settings.allow.push_back(*pattern);
    }
    for (std::string range : network.at("private")) settings.allowedPrivate.push_back(range);
    settings.refusedAddresses = sandbox::ownAddresses();
    return std::nullopt;
  }

  void takeLimits() {
    auto& limits = box.at("limits");
    settings.memoryBytes = limits.at("memory_bytes");
    settings.nanoCpus = limits.at("nano_cpus");
    settings.pids = limits.at("pids");
  }

  // The plan has names alone. A variable that was added to the binding since is not part of what the Work ran in.
  Environment makeVariables(const AgentSetup& setup) const {
    std::set<std::string> named = request.pinned.document.at("environment").get<std::set<std::string>>();
    auto binding = request.binding;
    for (auto& [name, value] : request.binding.env) {
      if (named.count(name) == 0) binding.env.erase(name);
    }
    EnvironmentRequest asked{binding,         request.places, request.work.title,  "",
                             request.work.id, request.id,     request.work.branch, setup.environment};
    for (auto& [name, value] : sandbox::containerEnvironment(request.places.workHome(request.work.id),
                                                             request.places.home, settings.mounts)) {
      asked.added[name] = value;
    }
    auto variables = makeEnvironment(asked, own);
    if (binding.env.count("PATH") == 0) variables.erase("PATH");  // the image has one of its own
    // A person answers questions.
    for (auto name : {"OPEN_CONDUIT_BODY_FILE", "GIT_TERMINAL_PROMPT"}) variables.erase(name);
    variables["TERM"] = request.terminal.kind;
    if (!request.terminal.colours.empty()) variables["COLORTERM"] = request.terminal.colours;
    variables.emplace("LANG", "C.UTF-8");
    for (auto& variable : request.secretVariables) variables.erase(variable);
    return variables;
  }

  const AttachPlanRequest& request;
  const Environment& own;
  const Json& box;
  sandbox::ContainerSettings settings;
};

}  // namespace

std::vector<std::string> PinnedContainer::secretVariables() const {
  auto variables = document.at("secrets").get<std::vector<std::string>>();
  variables.erase(std::remove(variables.begin(), variables.end(), toolbeltToken), variables.end());
  return variables;
}

OrRefusal<AttachPlan> makeAttachPlan(const AttachPlanRequest& request, const Environment& own) {
  try {
    return Maker(request, own).make();
  } catch (const Json::exception& exception) {
    return Refusal{
        "no_plan",
        fmt::format("the plan of run {} cannot be carried out again: {}", request.pinned.run, exception.what()),
        "let a run of the Work begin, which is planned anew: open-conduit work say"};
  }
}

}  // namespace oc::work
