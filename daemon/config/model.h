// The config as the rest of the daemon sees it: checked, with every default filled in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/host_pattern.h"
#include "base/json.h"

namespace oc::config {

// What a run can use up.
struct ResourceLimits {
  std::optional<double> cpus;
  std::string memory;  // "8g"; empty: none
  std::optional<uint32_t> pids;

  bool any() const { return cpus || pids || !memory.empty(); }
};

struct SrtPolicy {
  std::vector<std::string> write;  // as written: "/…", "~/…", "{workspace}…", "{run}…"
  std::vector<std::string> readDeny, readAllow;
  std::vector<HostPattern> networkAllow;
  std::vector<std::string> sockets;                  // also "{toolbelt}"
  bool allUnixSockets = false;                       // unix_sockets: "all"
  std::optional<std::vector<std::string>> readOnly;  // read.only, in place of the two other lists: the strict mode
  ResourceLimits limits = {};
};

struct ContainerPolicy {
  std::string image;
  std::vector<std::string> write, read;
  std::vector<HostPattern> networkAllow;
  std::vector<std::string> networkPrivate;
  std::optional<double> cpus;
  std::string memory;
  uint32_t pids = 4096;
  std::string context = "default";
};

struct Binding {
  std::string scope, name;
  std::string executor;  // "shell", "claude-code"
  std::string connection;
  std::vector<std::string> operations, secretNames;
  Json requires_;       // as written
  Json executorConfig;  // `config`, as written, checked

  // From `config`:
  std::vector<std::string> command;  // shell
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> secretEnv;
  std::string branch = "agent/{work}";  // also {number}, {run}
  std::string workspaceMode = "clone";  // clone, worktree; the same as resourceMode
  std::string playbook;                 // claude-code
  std::string homeSeed;                 // absolute, normal form, or empty

  // From `resource`:
  bool hasResource = false;
  std::string checkout;  // absolute, normal form
  std::string resourceMode = "clone";
  std::vector<std::string> setup;  // a command, or empty

  std::optional<SrtPolicy> srt;  // `sandbox`
  std::optional<ContainerPolicy> container;

  uint64_t timeoutSeconds = 0;  // 0: none
  uint64_t stallSeconds = 0;
  uint32_t retries = 0;
  uint32_t maxRuns = 0;     // at once; 0: no bound of its own
  uint32_t maxTurns = 0;    // claude-code; 0: no bound
  double maxBudgetUsd = 0;  // claude-code; 0: no bound

  std::string id() const { return scope + "/" + name; }
  // "none", "srt" or "docker".
  std::string sandboxKind() const { return container ? "docker" : srt ? "srt" : "none"; }
};

struct Connection {
  std::string id, type;                           // type: "github"
  std::string auth, appId;                        // auth: "app", "token"
  bool gitAsBot = false;                          // git: "bot"
  std::map<std::string, std::string> secretRefs;  // app_private_key, token, bot_private_key, webhook_secret
  std::string botAppId;                           // empty: none
  std::string apiUrl = "https://api.github.com", caFile;
  uint64_t pollSeconds = 60;
  uint16_t webhookPort = 0;  // 0: none
};

struct Authorization {
  std::vector<std::string> connections, operations, readScopes;
};

struct Extension {
  std::string name, type, connection;  // type: "github"
  std::vector<std::string> secretNames;
  std::string workNamespace, repo;  // config: namespace, repo ("owner/name")
};

struct Route {
  std::string name, handler, binding;
  std::string activePolicy = "queue";          // inject, queue, ignore
  std::vector<std::string> labels, assignees;  // conditions; empty: any
};

struct Scope {
  std::string id, name;
  std::map<std::string, std::string> secretRefs;  // name → "keyring:…", "file:…", "env:…"
  Authorization authorization;
  std::vector<Extension> extensions;
  std::vector<Route> routes;
  std::vector<Binding> bindings;
};

struct ExtensionSettings {
  std::vector<std::string> passEnv;
  std::string node, package;  // srt: absolute paths, or empty to look for them
  std::string program;        // claude: likewise
};

struct Settings {
  uint32_t maxRuns = 8;
  uint64_t logMaxBytes = 64u << 20;  // per run
  uint64_t graceSeconds = 10;        // between TERM and KILL
  uint32_t preparedContainers = 1;   // bindings that may have a container which waits for their next Work
  uint32_t preparedGateways = 1;     // that wait for container runs, for each Engine
  std::map<std::string, ExtensionSettings> extensions;  // by provider
};

struct Config {
  std::string path;  // the file that it came from
  Settings settings;
  std::vector<Connection> connections;
  std::vector<Scope> scopes;

  // "scope/binding"; null when there is none.
  const Binding* findBinding(std::string_view id) const;
  const Scope* findScope(std::string_view id) const;
};

}  // namespace oc::config
