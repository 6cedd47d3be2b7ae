#include "container_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/text.h"
#include "daemon/sandbox/run_place.h"
#include "daemon/sandbox/srt_settings.h"
#include "daemon/sandbox/startup_writes.h"
#include "secrets.h"
#include "written_by_agents.h"

namespace oc::work {

namespace {

std::optional<Refusal> refuseLimits(const sandbox::ContainerSettings& settings, const EngineFacts& engine) {
  auto refusal = [&engine](const char* name) {
    return Refusal{
        "sandbox_unavailable",
        fmt::format("limits.{}: the Docker Engine {} cannot enforce it on this machine", name, engine.version),
        "remove the limit, or give the Engine a cgroup that it may manage"};
  };
  if (settings.memoryBytes != 0 && !engine.limitsMemory) return refusal("memory");
  if (settings.nanoCpus != 0 && !engine.limitsCpus) return refusal("cpus");
  if (settings.pids != 0 && !engine.limitsPids) return refusal("pids");
  return std::nullopt;
}

Json describeContainer(const ContainerSpec& spec, const RunEngine& engine) {
  auto& settings = spec.settings;
  auto mounts = Json::array();
  for (auto& mount : settings.mounts) {
    mounts.push_back({{"source", mount.source},
                      {"target", mount.target},
                      {"writable", mount.writable},
                      {"device", mount.device},
                      {"inode", mount.inode}});
  }
  auto environment = Json::object();
  for (auto& [name, value] : spec.environment) environment[name] = value;
  auto allow = Json::array();
  for (auto& host : settings.allow) allow.push_back(host.toString());
  return {
      {"provider", "docker"},
      {"engine",
       {{"context", engine.engine.context},
        {"socket", engine.engine.socket},
        {"id", engine.engine.id},
        {"version", engine.engine.version},
        {"api_version", engine.engine.apiVersion},
        {"rootless", engine.engine.rootless}}},
      {"image",
       {{"reference", engine.image.reference}, {"id", engine.image.id}, {"repo_digests", engine.image.repoDigests}}},
      {"gateway_image", {{"reference", engine.gatewayImage.reference}, {"id", engine.gatewayImage.id}}},
      {"user", spec.user},
      {"entry", spec.command},
      {"environment", environment},
      {"mounts", mounts},
      {"network", {{"allow", allow}, {"private", settings.allowedPrivate}, {"refuse", settings.refusedAddresses}}},
      {"limits", {{"memory_bytes", settings.memoryBytes}, {"nano_cpus", settings.nanoCpus}, {"pids", settings.pids}}}};
}

// Programs that run outside of sandboxes, which no container may write.
std::vector<std::string> programsOutside(const config::Config& config, const Places& places) {
  std::vector<std::string> outside = {"/usr/bin/git", "/usr/bin/bwrap", "/usr/bin/docker"};
  auto found = config.settings.extensions.find("srt");
  auto srt =
      sandbox::findSrt(found == config.settings.extensions.end() ? config::ExtensionSettings() : found->second, places);
  if (!srt.ok()) return outside;
  for (auto& part : srt.value().all()) outside.push_back(part);
  return outside;
}

OrRefusal<sandbox::ContainerSettings> settingsFor(const ContainerPlanRequest& request, const Environment& own) {
  auto& places = request.places;
  sandbox::ContainerPlace place{sandbox::makeRunPlace(request.config, places, request.work, request.run, own),
                                places.workHome(request.work),
                                places.runSecrets(request.run),
                                request.programs,
                                request.engine.engine.socket,
                                programsOutside(request.config, places)};
  auto settings = sandbox::makeContainerSettings(*request.binding.container, places, place, own);
  if (!settings.ok()) return settings;
  if (auto refusal = sandbox::refuseStartupWrites(sandbox::writableOf(settings.value()), places)) return *refusal;
  if (auto refusal = refuseLimits(settings.value(), request.engine.engine)) return *refusal;
  return settings;
}

}  // namespace

OrRefusal<ContainerPlan> planContainer(const ContainerPlanRequest& request, const Environment& own) {
  auto settings = settingsFor(request, own);
  if (!settings.ok()) return settings.refusal();
  ContainerPlan plan;
  plan.notes = settings.value().notes;
  auto& spec = plan.spec;
  spec.owner = request.owner;
  spec.run = request.run;
  spec.image = request.engine.image.id;
  spec.gatewayImage = request.engine.gatewayImage.id;
  spec.command = containerEntry(settings.value(), true, true, request.toolbelt);
  spec.environment.assign(settings.value().environment.begin(), settings.value().environment.end());
  spec.user = containerUser(request.engine.engine);
  spec.hostname = request.run;
  spec.preparedGateway = request.engine.preparedGateway;
  spec.settings = std::move(settings.value());
  plan.document = describeContainer(spec, request.engine);
  spec.planSha256 = containerHash(plan.document);
  return plan;
}

std::string containerHash(Json sandbox) {
  sandbox.erase("network");
  return sha256Hex(canonicalJson(sandbox));
}

std::optional<Refusal> writeAgentsFiles(const Places& places, const std::string& run, const Environment& environment,
                                        const std::vector<std::string>& command,
                                        const std::map<std::string, SecretBytes>& secrets) {
  std::vector<std::string> texts;
  for (auto& [name, value] : environment) texts.push_back(name + "=" + value);
  texts.push_back("");
  texts.insert(texts.end(), command.begin(), command.end());
  std::string file;
  for (auto& text : texts) {
    if (text.find('\0') != std::string::npos) {
      return Refusal{
          "request_invalid",
          fmt::format("the agent's command or environment has a NUL in \"{}\"", shortened(printable(text), 80)),
          "remove it: no program can be given one"};
    }
    file.append(text).push_back('\0');
  }
  auto folder = places.runSecrets(run);
  writeSecretsFile(folder + "/secrets", secrets);
  writeFileAtomically(folder + "/start", file, 0600);
  return std::nullopt;
}

std::string containerUser(const EngineFacts& engine) {
  // Inside a rootless engine's containers root is the operator outside.
  return engine.rootless ? "0:0" : fmt::format("{}:{}", geteuid(), getegid());
}

// The entry point checks the mounts, gives the gateway its ports, takes the agent and the secrets, and starts the
// agent.
std::vector<std::string> containerEntry(const sandbox::ContainerSettings& settings, bool agentLater, bool secrets,
                                        bool toolbelt) {
  // A gateway without a policy is no gateway yet. One that does not come at all ends the run from outside.
  std::vector<std::string> words = {sandbox::containerProgram, "enter", "--wait-ms", "0"};
  for (auto& mount : settings.mounts) {
    words.insert(words.end(), {"--mount", fmt::format("{}:{}:{}", mount.device, mount.inode, mount.target)});
  }
  if (secrets) {
    words.insert(words.end(), {"--secrets", fmt::format("{}/secrets", sandbox::containerSecrets)});
  }
  auto port = [&words](uint16_t number, const char* socket) {
    words.insert(words.end(), {"--port", fmt::format("{}:{}/{}", number, sandbox::containerGateway, socket)});
  };
  port(sandbox::containerProxyPort, "proxy.port");
  if (toolbelt) port(sandbox::containerToolbeltPort, "toolbelt.port");
  if (agentLater) {
    words.insert(words.end(), {"--start", fmt::format("{}/start", sandbox::containerSecrets)});
  } else {
    words.push_back("--");
  }
  return words;
}

}  // namespace oc::work
