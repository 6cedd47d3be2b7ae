#include "from_config.h"

#include <algorithm>

#include "proto/github_operations.h"

namespace oc::hub {

namespace {

std::string referenceOf(const config::Connection& connection, const char* name) {
  auto found = connection.secretRefs.find(name);
  return found == connection.secretRefs.end() ? std::string() : found->second;
}

void need(std::map<std::string, std::string>& needs, const std::string& permission) {
  auto equals = permission.find('=');
  auto& level = needs[permission.substr(0, equals)];
  if (level != "write") level = permission.substr(equals + 1);
}

bool lists(const config::Binding& binding, const GitHubOperation& operation) {
  return std::any_of(binding.operations.begin(), binding.operations.end(),
                     [&operation](auto& name) { return name == operation.name || name == operation.toolset; });
}

}  // namespace

ConnectionSpec specOf(const config::Connection& connection) {
  ConnectionSpec spec;
  spec.id = connection.id;
  spec.api = connection.apiUrl;
  while (spec.api.ends_with('/')) spec.api.pop_back();
  spec.caFile = connection.caFile;
  spec.byApp = connection.auth == "app";
  spec.appId = connection.appId;
  spec.botAppId = connection.botAppId;
  spec.gitAsBot = connection.gitAsBot;
  if (spec.byApp) spec.key = referenceOf(connection, "app_private_key");
  if (!spec.byApp) spec.token = referenceOf(connection, "token");
  if (!spec.botAppId.empty()) spec.botKey = referenceOf(connection, "bot_private_key");
  return spec;
}

std::vector<Source> sourcesOf(const config::Config& config, const std::string& connection) {
  std::vector<Source> sources;
  auto known = std::find_if(config.connections.begin(), config.connections.end(),
                            [&](auto& one) { return one.id == connection; });
  if (known == config.connections.end()) return sources;
  for (auto& scope : config.scopes) {
    for (auto& extension : scope.extensions) {
      if (extension.type != "github" || extension.connection != connection) continue;
      auto same =
          std::find_if(sources.begin(), sources.end(), [&](auto& source) { return source.repo == extension.repo; });
      if (same == sources.end())
        same = sources.insert(same, Source{extension.repo, {}, static_cast<uint32_t>(known->pollSeconds)});
      for (auto& route : scope.routes) {
        if (route.handler == "github")
          same->routes.push_back(
              {route.name, scope.id, route.binding, route.activePolicy, route.labels, route.assignees});
      }
    }
  }
  return sources;
}

std::vector<std::string> permissionsNeeded(const config::Config& config, const std::string& connection) {
  std::map<std::string, std::string> needs;
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) {
      if (binding.connection != connection) continue;
      for (auto& operation : gitHubOperations()) {
        if (lists(binding, operation)) need(needs, operation.permission);
      }
    }
  }
  // The intake reads issues, and says on them how their Work stands.
  if (!sourcesOf(config, connection).empty()) need(needs, "issues=write");
  std::vector<std::string> result;
  for (auto& [name, level] : needs) result.push_back(name + "=" + level);
  return result;
}

std::map<std::string, std::string> gitEnvironment(const Identity* author, const std::string& gitHost,
                                                  const std::string& helper) {
  std::map<std::string, std::string> environment;
  if (author != nullptr) {
    for (auto who : {"AUTHOR", "COMMITTER"}) {
      environment[std::string("GIT_") + who + "_NAME"] = author->name;
      environment[std::string("GIT_") + who + "_EMAIL"] = author->email;
    }
  }
  if (helper.empty()) return environment;
  // An empty helper takes away those of every file. The path tells which repository git asks for.
  auto section = "credential.https://" + gitHost;
  std::pair<std::string, std::string> settings[] = {{"credential.helper", ""},
                                                    {section + ".helper", ""},
                                                    {section + ".helper", helper},
                                                    {section + ".useHttpPath", "true"}};
  size_t index = 0;
  for (auto& [name, value] : settings) {
    environment["GIT_CONFIG_KEY_" + std::to_string(index)] = name;
    environment["GIT_CONFIG_VALUE_" + std::to_string(index++)] = value;
  }
  environment["GIT_CONFIG_COUNT"] = std::to_string(index);
  environment["GIT_TERMINAL_PROMPT"] = "0";
  return environment;
}

}  // namespace oc::hub
