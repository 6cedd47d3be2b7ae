#include "build.h"

#include "base/paths.h"
#include "check_shape.h"
#include "description.h"

namespace oc::config {

namespace {

using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

// Every field has been checked and every default filled in: what is missing here is optional.
std::string textOf(const Json& parent, const char* name) { return parent.value(name, std::string()); }

template <typename T>
T numberOf(const Json& parent, const char* name) {
  auto found = parent.find(name);
  return found == parent.end() ? T(0) : found->get<T>();
}

std::vector<HostPattern> hostsOf(const Json& network) {
  std::vector<HostPattern> result;
  for (auto& entry : network.at("allow")) {
    std::string why;
    result.push_back(*parseHostPattern(entry.get<std::string>(), why));
  }
  return result;
}

// workspace_mode and resource.config.mode are one thing that can be said in two places: what was said in one holds.
void settleModes(Binding& binding, const Node& tree) {
  if (!binding.hasResource) return;
  auto& resource = tree.find("resource")->value.find("config")->value;
  bool saidHere = tree.find("config")->value.find("workspace_mode") != nullptr;
  if (resource.find("mode") == nullptr && saidHere) {
    binding.resourceMode = binding.workspaceMode;
  } else {
    binding.workspaceMode = binding.resourceMode;
  }
}

class Builder {
 public:
  explicit Builder(const Environment& environment) : environment(environment) {}

  Config build(const Json& root, const Node& tree) {
    Config config;
    config.settings = settings(root.at("settings"));
    for (auto& item : root.at("connections")) config.connections.push_back(connection(item));
    for (size_t i = 0; i < root.at("scopes").size(); ++i) {
      auto& scopeTree = tree.find("scopes")->value.items[i];
      config.scopes.push_back(scope(root.at("scopes")[i], scopeTree));
    }
    return config;
  }

 private:
  Settings settings(const Json& from) {
    Settings result;
    result.maxRuns = from.at("max_runs");
    result.logMaxBytes = from.at("log_max_bytes");
    result.graceSeconds = from.at("grace");
    result.preparedGateways = from.at("prepared_gateways");
    result.preparedContainers = from.at("prepared_containers");
    for (auto& [name, extension] : from.at("extensions").items()) {
      result.extensions[name] = {extension.value("pass_env", Texts()), textOf(extension, "node"),
                                 textOf(extension, "package_dir"), textOf(extension, "program")};
    }
    return result;
  }

  Connection connection(const Json& from) {
    auto& config = from.at("config");
    return {from.at("id"),
            from.at("type"),
            config.at("auth"),
            textOf(config, "app_id"),
            textOf(config, "git") == "bot",
            from.at("secret_refs").get<TextMap>(),
            textOf(config, "bot_app_id"),
            config.at("api_url"),
            textOf(config, "ca_file"),
            config.at("poll_interval"),
            numberOf<uint16_t>(config, "webhook_port")};
  }

  Scope scope(const Json& from, const Node& tree) {
    Scope result;
    result.id = from.at("id");
    result.name = from.value("name", result.id);
    result.secretRefs = from.at("secret_refs").get<TextMap>();
    auto& authorization = from.at("authorization");
    result.authorization = {authorization.at("connections"), authorization.at("operations"),
                            authorization.at("read_scopes")};
    for (auto& item : from.at("extensions")) result.extensions.push_back(extension(item));
    for (auto& item : from.at("routes")) {
      auto& conditions = item.at("config");
      result.routes.push_back({item.at("name"), item.at("handler"), item.at("binding"), item.at("active_policy"),
                               conditions.at("labels").get<Texts>(), conditions.at("assignees").get<Texts>()});
    }
    for (size_t i = 0; i < from.at("bindings").size(); ++i) {
      auto& bindingTree = tree.find("bindings")->value.items[i];
      result.bindings.push_back(binding(from.at("bindings")[i], bindingTree, result.id));
    }
    return result;
  }

  Extension extension(const Json& from) {
    auto& config = from.at("config");
    return {from.at("name"),
            from.at("type"),
            textOf(from, "connection"),
            from.at("secret_names"),
            textOf(config, "namespace"),
            config.at("repo")};
  }

  Binding binding(const Json& from, const Node& tree, const std::string& scopeId) {
    Binding result;
    result.scope = scopeId;
    result.name = from.at("name");
    result.executor = from.at("executor");
    result.connection = textOf(from, "connection");
    result.operations = from.at("operations").get<Texts>();
    result.secretNames = from.at("secret_names").get<Texts>();
    auto requires_ = tree.find("requires");
    result.requires_ = requires_ == nullptr ? Json::object() : requires_->value.toJson();
    result.executorConfig = tree.find("config")->value.toJson();
    fillFromConfig(from.at("config"), result);
    fillFromResource(from, result);
    settleModes(result, tree);
    if (from.contains("sandbox")) result.srt = srt(from.at("sandbox").at("config"));
    if (from.contains("container")) result.container = docker(from.at("container").at("config"));
    fillBounds(from, result);
    return result;
  }

  void fillFromConfig(const Json& from, Binding& binding) {
    if (from.contains("command")) binding.command = from.at("command").get<Texts>();
    binding.env = from.at("env").get<TextMap>();
    binding.secretEnv = from.at("secret_env").get<TextMap>();
    binding.branch = from.at("branch");
    binding.workspaceMode = from.value("workspace_mode", binding.workspaceMode);
    binding.playbook = textOf(from, "playbook");
    if (from.contains("home_seed")) binding.homeSeed = path(from.at("home_seed"));
  }

  void fillFromResource(const Json& from, Binding& binding) {
    if (!from.contains("resource")) return;
    auto& config = from.at("resource").at("config");
    binding.hasResource = true;
    binding.checkout = path(config.at("checkout"));
    binding.setup = config.at("setup").get<Texts>();
    binding.resourceMode = config.at("mode");
  }

  void fillBounds(const Json& from, Binding& binding) {
    binding.timeoutSeconds = numberOf<uint64_t>(from, "timeout");
    binding.stallSeconds = numberOf<uint64_t>(from, "stall_timeout");
    binding.retries = numberOf<uint32_t>(from, "retries");
    binding.maxRuns = numberOf<uint32_t>(from, "max_runs");
    binding.maxTurns = numberOf<uint32_t>(from, "max_turns");
    binding.maxBudgetUsd = numberOf<double>(from, "max_budget_usd");
  }

  SrtPolicy srt(const Json& from) {
    auto& read = from.at("read");
    SrtPolicy policy = {from.at("write"),   read.at("deny"),
                        read.at("allow"),   hostsOf(from.at("network")),
                        from.at("sockets"), textOf(from, "unix_sockets") == "all",
                        std::nullopt,       {}};
    if (read.contains("only")) policy.readOnly = read.at("only").get<Texts>();
    auto& limits = from.at("limits");
    if (limits.contains("cpus")) policy.limits.cpus = limits.at("cpus").get<double>();
    policy.limits.memory = textOf(limits, "memory");
    if (limits.contains("pids")) policy.limits.pids = limits.at("pids").get<uint32_t>();
    return policy;
  }

  ContainerPolicy docker(const Json& from) {
    auto& limits = from.at("limits");
    ContainerPolicy policy;
    policy.image = from.at("image");
    policy.write = from.at("write").get<Texts>();
    policy.read = from.at("read").get<Texts>();
    policy.networkAllow = hostsOf(from.at("network"));
    policy.networkPrivate = from.at("network").at("private").get<Texts>();
    if (limits.contains("cpus")) policy.cpus = limits.at("cpus").get<double>();
    policy.memory = textOf(limits, "memory");
    policy.pids = limits.at("pids");
    policy.context = from.at("provider").at("context");
    return policy;
  }

  std::string path(const std::string& entry) { return expandPath(entry, environment.home, {}).value_or(entry); }

  const Environment& environment;
};

}  // namespace

Config buildConfig(const Node& root, const Environment& environment) {
  return Builder(environment).build(fillDefaults(root, configShape()), root);
}

const Binding* Config::findBinding(std::string_view id) const {
  for (auto& scope : scopes) {
    for (auto& binding : scope.bindings) {
      if (binding.id() == id) return &binding;
    }
  }
  return nullptr;
}

const Scope* Config::findScope(std::string_view id) const {
  for (auto& scope : scopes) {
    if (scope.id == id) return &scope;
  }
  return nullptr;
}

}  // namespace oc::config
