#include "plan.h"

#include <fmt/format.h>

#include "base/crypto.h"
#include "base/text.h"
#include "daemon/sandbox/srt_settings.h"

namespace oc::work {

namespace {

std::string joinQuoted(const std::vector<std::string>& words) {
  std::string result;
  for (auto& word : words) result += (result.empty() ? "" : " ") + shellQuote(word);
  return result;
}

// A workspace's own set-up runs once, before the job, as the operator: only unsandboxed bindings have it.
std::vector<std::string> withSetup(const config::Binding& binding, bool first) {
  if (binding.setup.empty() || !first) return binding.command;
  return {"/bin/sh", "-c", joinQuoted(binding.setup) + " || exit $?; exec " + joinQuoted(binding.command)};
}

// Leaves a mark once the sandbox has let it start: without it an end is the sandbox's failure and not the job's.
std::vector<std::string> withMarker(const std::string& marker, const std::vector<std::string>& command) {
  std::vector<std::string> result = {"/bin/sh", "-c", ": > \"$0\" && exec \"$@\"", marker};
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

// How the agent finds its toolbelt. The folder comes last in PATH: the agent may write it, and what its parent starts is
// looked for there, too.
void addToolbelt(const PlannedToolbelt& toolbelt, Environment& environment) {
  if (toolbelt.operations.empty()) return;
  environment["OPEN_CONDUIT_TOOLBELT"] = "unix:" + toolbelt.socket;
  environment["OPEN_CONDUIT_TOOLBELT_TOKEN"] = std::string(toolbelt.tokenHex.view());
  if (toolbelt.program.empty()) return;
  environment["OPEN_CONDUIT_TOOLBELT_PROGRAM"] = toolbelt.program;
  environment["PATH"] += ":" + toolbelt.folder;
}

Json environmentNames(const Environment& environment) {
  auto names = Json::array();
  for (auto& [name, value] : environment) names.push_back(name);
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
      {"environment", environmentNames(plan.environment)},
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

config::ExtensionSettings srtSettingsOf(const config::Config& config) {
  auto found = config.settings.extensions.find("srt");
  return found == config.settings.extensions.end() ? config::ExtensionSettings() : found->second;
}

OrRefusal<Plan> planForSrt(const PlanRequest& request, const Environment& own, EnvironmentRequest& environment) {
  auto parts = sandbox::findSrt(srtSettingsOf(request.config), request.places);
  if (!parts.ok()) return parts.refusal();
  auto& places = request.places;
  auto& run = request.run.id;
  sandbox::RunPlace place{request.work.id, run, places.workspace(request.work.id), places.runFiles(run),
                          places.runFiles(run) + "/tmp", request.toolbelt.socket, request.config.path};
  auto settings = sandbox::makeSrtSettings(*request.binding.srt, parts.value(), places, place, own);
  if (!settings.ok()) return settings.refusal();
  environment.added = settings.value().environment;
  auto made = makeEnvironment(environment, own);
  if (!made.ok()) return made.refusal();

  Plan plan;
  plan.provider = "srt";
  plan.environment = made.value();
  addToolbelt(request.toolbelt, plan.environment);
  plan.hidden = settings.value().hidden;
  plan.kept = settings.value().kept;
  plan.startedMarker = places.runFiles(run) + "/.started";
  plan.command = withPath(request.binding, plan.environment, withMarker(plan.startedMarker, request.binding.command));
  plan.directory = place.workspace;
  plan.settings = canonicalJson(settings.value().settings);
  plan.settingsFile = settings.value().settingsFile;
  plan.job = sandbox::srtJob(parts.value(), settings.value());
  plan.notes = settings.value().notes;
  plan.document = describe(request, plan);
  plan.document["sandbox"] = {{"provider", "srt"},
                              {"version", parts.value().version},
                              {"node", parts.value().node},
                              {"settings", settings.value().settings},
                              {"hidden", plan.hidden}};
  return plan;
}

OrRefusal<Plan> planForHost(const PlanRequest& request, const Environment& own,
                            const EnvironmentRequest& environment) {
  auto made = makeEnvironment(environment, own);
  if (!made.ok()) return made.refusal();
  Plan plan;
  plan.provider = "host";
  plan.environment = made.value();
  addToolbelt(request.toolbelt, plan.environment);
  plan.command = withSetup(request.binding, request.run.attempt == 1 && request.work.savedTip.empty());
  plan.directory = request.places.workspace(request.work.id);
  plan.document = describe(request, plan);
  return plan;
}

}  // namespace

OrRefusal<Plan> makePlan(const PlanRequest& request, const Environment& own) {
  auto* scope = request.config.findScope(request.binding.scope);
  EnvironmentRequest environment{request.binding, *scope,           request.places, request.work.title,
                                 request.places.runFiles(request.run.id) + "/body",
                                 request.work.id, request.run.id, request.work.branch,
                                 {}};
  auto plan = request.binding.srt ? planForSrt(request, own, environment) : planForHost(request, own, environment);
  if (!plan.ok()) return plan;
  plan.value().json = canonicalJson(plan.value().document);
  plan.value().sha256 = sha256Hex(plan.value().json);
  return plan;
}

}  // namespace oc::work
