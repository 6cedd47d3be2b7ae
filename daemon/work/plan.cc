#include "plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include <set>

#include "base/crypto.h"
#include "base/text.h"
#include "container_plan.h"
#include "daemon/sandbox/run_place.h"
#include "daemon/sandbox/srt_settings.h"
#include "daemon/sandbox/startup_writes.h"
#include "written_by_agents.h"

namespace oc::work {

namespace {

std::string joinQuoted(const std::vector<std::string>& words) {
  std::string result;
  for (auto& word : words) result += (result.empty() ? "" : " ") + shellQuote(word);
  return result;
}

// A workspace's own set-up runs once, before the job, as the operator: only unsandboxed bindings have it.
std::vector<std::string> withSetup(const config::Binding& binding, const std::vector<std::string>& command,
                                   bool first) {
  if (binding.setup.empty() || !first) return command;
  return {"/bin/sh", "-c", joinQuoted(binding.setup) + " || exit $?; exec " + joinQuoted(command)};
}

// Leaves a mark once the sandbox has let it start: without it an end is the sandbox's failure and not the job's. The
// shell speaks by our name where the command is not there.
std::vector<std::string> withMarker(const std::string& marker, const std::vector<std::string>& command) {
  std::vector<std::string> result = {"/bin/sh", "-c", ": > \"$1\" && shift && exec \"$@\"", "open-conduit", marker};
  result.insert(result.end(), command.begin(), command.end());
  return result;
}

// The parent of a sandbox looks for its tools in PATH: a binding's own PATH counts inside only.
std::vector<std::string> withPath(const config::Binding& binding, Environment& environment,
                                  std::vector<std::string> command) {
  if (binding.env.count("PATH") == 0) return command;
  command.insert(command.begin(), {"/usr/bin/env", "PATH=" + environment["PATH"]});
  environment["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  return command;
}

// How the agent finds its toolbelt, whose token is a secret like the others. The folder comes last in PATH: the agent
// may write it, and what its parent starts is looked for there, too.
void addToolbelt(const PlannedToolbelt& toolbelt, Environment& environment) {
  if (toolbelt.operations.empty()) return;
  environment["OPEN_CONDUIT_TOOLBELT"] = "unix:" + toolbelt.socket;
  if (toolbelt.program.empty()) return;
  environment["OPEN_CONDUIT_TOOLBELT_PROGRAM"] = toolbelt.program;
  environment["PATH"] += ":" + toolbelt.folder;
}

Json environmentNames(const Environment& environment, const std::vector<std::string>& secretVariables) {
  std::set<std::string> names(secretVariables.begin(), secretVariables.end());
  for (auto& [name, value] : environment) names.insert(name);
  return names;
}

Json describe(const PlanRequest& request, const Plan& plan) {
  auto& binding = request.binding;
  Json document = {
      {"version", 1},
      {"kind", binding.sandboxKind()},
      {"binding", binding.id()},
      {"executor", binding.executor},
      {"command", plan.command},
      {"directory", plan.directory},
      {"environment", environmentNames(plan.environment, request.secretVariables)},
      {"limits",
       {{"timeout_seconds", binding.timeoutSeconds},
        {"stall_timeout_seconds", binding.stallSeconds},
        {"log_bytes", request.config.settings.logMaxBytes}}},
  };
  if (binding.hasResource) {
    document["workspace"] = {{"mode", request.work.workspaceMode},
                             {"checkout", request.work.checkout},
                             {"branch", request.work.branch},
                             {"base", request.work.base}};
  }
  auto operations = Json::array();
  for (auto& operation : request.toolbelt.operations) operations.push_back(operation.name);
  document["toolbelt"] = {{"operations", operations}};
  return document;
}

// Of srt's settings, where a path may be marked as one that is no pattern.
std::vector<std::string> pathsOf(const Json& list) {
  std::vector<std::string> paths;
  for (auto& entry : list) paths.push_back(entry.is_string() ? entry : entry.at("path"));
  return paths;
}

config::ExtensionSettings srtSettingsOf(const config::Config& config) {
  auto found = config.settings.extensions.find("srt");
  return found == config.settings.extensions.end() ? config::ExtensionSettings() : found->second;
}

OrRefusal<Plan> planForSrt(const PlanRequest& request, const Environment& own, EnvironmentRequest& environment) {
  auto parts = sandbox::findSrt(srtSettingsOf(request.config), request.places);
  if (!parts.ok()) return parts.refusal();
  auto& places = request.places;
  auto outside = parts.value().names();
  outside.push_back(request.programs);
  if (auto refusal = refuseTurnedPrograms(request.config, places, outside)) return *refusal;
  auto& run = request.run.id;
  auto place = sandbox::makeRunPlace(request.config, places, request.work.id, run, own);
  place.toolbeltSocket = request.toolbelt.socket;
  place.programs = request.programs;
  auto settings = sandbox::makeSrtSettings(*request.binding.srt, parts.value(), places, place, own);
  if (!settings.ok()) return settings.refusal();
  for (auto& [name, value] : settings.value().environment) environment.added[name] = value;
  if (auto refusal = sandbox::refuseStartupWrites(settings.value().rules.allowWrite, places)) return *refusal;
  auto& granted = settings.value().settings.at("filesystem").at("allowWrite");
  auto writes = checkAgentsWrites(request.binding, pathsOf(granted));
  if (!writes.ok()) return writes.refusal();

  Plan plan;
  plan.provider = "srt";
  plan.environment = makeEnvironment(environment, own);
  addToolbelt(request.toolbelt, plan.environment);
  plan.hidden = settings.value().hidden;
  plan.kept = settings.value().kept;
  plan.startedMarker = places.runFiles(run) + "/.started";
  plan.command = withPath(request.binding, plan.environment, withMarker(plan.startedMarker, request.agent.command));
  plan.directory = place.workspace;
  plan.settings = canonicalJson(settings.value().settings);
  plan.settingsFile = settings.value().settingsFile;
  plan.job = sandbox::srtJob(parts.value(), settings.value());
  for (auto& folder : request.cgroups) plan.job.insert(plan.job.end(), {"--cgroup", folder});
  plan.notes = settings.value().notes;
  plan.document = describe(request, plan);
  plan.document["sandbox"] = {{"provider", "srt"},
                              {"version", parts.value().version},
                              {"node", parts.value().node},
                              {"settings", settings.value().settings},
                              {"hidden", plan.hidden}};
  auto& limits = request.binding.srt->limits;
  if (limits.any()) {
    auto& planned = plan.document["sandbox"]["limits"] = Json::object();
    if (!limits.memory.empty()) planned["memory"] = limits.memory;
    if (limits.cpus) planned["cpus"] = fmt::format("{}", *limits.cpus);  // canonical JSON has no fractions
    if (limits.pids) planned["pids"] = *limits.pids;
    plan.document["sandbox"]["cgroups"] = request.cgroups;
  }
  return plan;
}

OrRefusal<Plan> planForHost(const PlanRequest& request, const Environment& own, const EnvironmentRequest& environment) {
  Plan plan;
  plan.provider = "host";
  plan.environment = makeEnvironment(environment, own);
  addToolbelt(request.toolbelt, plan.environment);
  plan.command =
      withSetup(request.binding, request.agent.command, request.run.attempt == 1 && request.work.savedTip.empty());
  plan.directory = request.places.workspace(request.work.id);
  plan.document = describe(request, plan);
  return plan;
}

// ---- containers

// In a container the toolbelt is behind the gateway.
void addToolbeltInside(const PlannedToolbelt& toolbelt, Environment& environment) {
  if (toolbelt.operations.empty()) return;
  environment["OPEN_CONDUIT_TOOLBELT"] = fmt::format("tcp:127.0.0.1:{}", sandbox::containerToolbeltPort);
  environment["OPEN_CONDUIT_TOOLBELT_PROGRAM"] = sandbox::containerProgram;
}

OrRefusal<Plan> planForDocker(const PlanRequest& request, const Environment& own, EnvironmentRequest& environment) {
  auto& places = request.places;
  auto& run = request.run.id;
  auto made = planContainer({request.config, request.binding, request.work.id, run, places,
                             !request.toolbelt.operations.empty(), *request.engine, request.owner, request.programs},
                            own);
  if (!made.ok()) return made.refusal();
  auto& container = made.value();
  for (auto& [name, value] : container.spec.settings.environment) environment.added[name] = value;

  Plan plan;
  plan.provider = "docker";
  plan.directory = container.spec.settings.directory;
  plan.notes = std::move(container.notes);
  plan.startedMarker = places.runFiles(run) + "/.started";
  plan.command = withMarker(plan.startedMarker, request.agent.command);
  plan.environment = makeEnvironment(environment, own);
  // The image has a PATH of its own.
  if (request.binding.env.count("PATH") == 0) plan.environment.erase("PATH");
  addToolbeltInside(request.toolbelt, plan.environment);
  // Secrets go another way.
  for (auto& variable : request.secretVariables) plan.environment.erase(variable);
  plan.container = std::move(container.spec);
  plan.document = describe(request, plan);
  plan.document["secrets"] = request.secretVariables;
  plan.document["sandbox"] = std::move(container.document);
  return plan;
}

}  // namespace

OrRefusal<Plan> makePlan(const PlanRequest& request, const Environment& own) {
  EnvironmentRequest environment{
      request.binding, request.places, request.work.title,  request.places.runFiles(request.run.id) + "/body",
      request.work.id, request.run.id, request.work.branch, request.agent.environment};
  auto plan = request.binding.container ? planForDocker(request, own, environment)
              : request.binding.srt     ? planForSrt(request, own, environment)
                                        : planForHost(request, own, environment);
  if (!plan.ok()) return plan;
  plan.value().json = canonicalJson(plan.value().document);
  plan.value().sha256 = sha256Hex(plan.value().json);
  return plan;
}

}  // namespace oc::work
