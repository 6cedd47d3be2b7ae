// Loading as a whole: what is accepted, and what becomes of it.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "base/fd.h"
#include "config_support.h"

using namespace oc;
using namespace oc::config;
using namespace oc::config::testing;

namespace {

std::vector<std::string> texts(const std::vector<HostPattern>& hosts) {
  std::vector<std::string> result;
  for (auto& host : hosts) result.push_back(host.toString());
  return result;
}

using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

const Binding& bindingOf(const Loaded& loaded, std::string_view id) {
  INFO(rendered(loaded));
  REQUIRE(loaded.config);
  auto binding = loaded.config->findBinding(id);
  REQUIRE(binding != nullptr);
  return *binding;
}

struct TemporaryDirectory {
  std::string path;
  TemporaryDirectory() {
    char name[] = "/tmp/oc-config-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~TemporaryDirectory() { removeTree(path); }
};

}  // namespace

TEST_CASE("D1 a config with a container binding on a GitHub App is accepted, field by field") {
  auto loaded = load(fixture("container.json"));
  INFO(rendered(loaded));
  CHECK(loaded.diagnostics.empty());
  auto& binding = bindingOf(loaded, "web/agent");
  CHECK(binding.executor == "claude-code");
  CHECK(binding.connection == "github");
  CHECK(binding.operations == Texts{"@github.author", "@github.workspace"});
  CHECK(binding.secretNames == Texts{"claude-token"});
  CHECK(binding.requires_ == parseJson(R"({"toolbelt": "mcp", "inject": true, "resume": true, "workspace": true})"));
  CHECK(binding.executorConfig["playbook"] == "work-issue");
  CHECK(binding.playbook == "work-issue");
  CHECK(binding.branch == "agent/issue-{number}");
  CHECK(binding.workspaceMode == "clone");
  CHECK(binding.secretEnv == TextMap{{"claude-token", "CLAUDE_CODE_OAUTH_TOKEN"}});
  CHECK(binding.homeSeed == "/path/to/agent-home");
  CHECK(binding.hasResource);
  CHECK(binding.checkout == "/path/to/web");
  CHECK(binding.resourceMode == "clone");
  CHECK(binding.sandboxKind() == "docker");
  auto& policy = *binding.container;
  CHECK(policy.image.ends_with("4b3c2d1e"));
  CHECK(policy.write == Texts{"{workspace}"});
  CHECK(policy.read.empty());
  CHECK(texts(policy.networkAllow) == Texts{"api.anthropic.com", "github.com", "npm-registry.example.org"});
  CHECK(policy.cpus == 4.0);
  CHECK(policy.memory == "8g");
  CHECK(policy.pids == 2048);
  CHECK(policy.context == "orbstack");

  REQUIRE(loaded.config->connections.size() == 1);
  auto& connection = loaded.config->connections[0];
  CHECK(connection.id == "github");
  CHECK(connection.type == "github");
  CHECK(connection.auth == "app");
  CHECK(connection.appId == "123456");
  CHECK_FALSE(connection.gitAsBot);
  CHECK(connection.secretRefs == TextMap{{"app_private_key", "keyring:github-app-key"}});
  auto& scope = *loaded.config->findScope("web");
  CHECK(scope.name == "acme/web");
  CHECK(scope.secretRefs == TextMap{{"claude-token", "keyring:claude-token"}});
  CHECK(scope.authorization.connections == Texts{"github"});
  CHECK(scope.authorization.operations == Texts{"@github.author", "@github.workspace"});
  CHECK(scope.authorization.readScopes.empty());
  REQUIRE(scope.extensions.size() == 1);
  CHECK(scope.extensions[0].name == "web");
  CHECK(scope.extensions[0].connection == "github");
  CHECK(scope.extensions[0].workNamespace == "github/github.com/acme/web");
  CHECK(scope.extensions[0].repo == "acme/web");
  REQUIRE(scope.routes.size() == 1);
  CHECK(scope.routes[0].handler == "github");
  CHECK(scope.routes[0].binding == "agent");
  CHECK(scope.routes[0].activePolicy == "inject");
}

TEST_CASE("D1 a config with a process sandbox for Claude Code is accepted, field by field") {
  auto loaded = load(fixture("srt.json"));
  INFO(rendered(loaded));
  CHECK(loaded.diagnostics.empty());
  auto& binding = bindingOf(loaded, "web/agent");
  CHECK(binding.env == TextMap{{"CLAUDE_CONFIG_DIR", "/path/to/sandboxed-claude"}});
  CHECK(binding.sandboxKind() == "srt");
  auto& policy = *binding.srt;
  CHECK(policy.write == Texts{"{workspace}", "/path/to/sandboxed-claude", "~/.npm"});
  CHECK(policy.readDeny == Texts{"~/.config/op"});
  CHECK(policy.readAllow.empty());
  CHECK(texts(policy.networkAllow) ==
        Texts{"api.anthropic.com", "github.com", "*.githubusercontent.com", "npm-registry.example.org"});
  CHECK(policy.sockets == Texts{"{toolbelt}"});
  CHECK(policy.allUnixSockets);
}

TEST_CASE("D1 a config of shell jobs needs no connection, route or extension") {
  auto loaded = load(fixture("shell.json"));
  INFO(rendered(loaded));
  CHECK(loaded.diagnostics.empty());
  auto& settings = loaded.config->settings;
  CHECK(settings.maxRuns == 4);
  CHECK(settings.logMaxBytes == 1048576);
  CHECK(settings.graceSeconds == 5);
  CHECK(settings.extensions.at("docker").passEnv == Texts{"XDG_RUNTIME_DIR", "DOCKER_CONFIG"});
  CHECK(settings.extensions.at("srt").node == "/opt/node/bin/node");
  CHECK(settings.extensions.at("srt").package == "/opt/srt");
  auto& scope = *loaded.config->findScope("demo");
  CHECK(scope.name == "demo");
  CHECK(scope.secretRefs == TextMap{{"deploy", "file:/etc/deploy-key"}, {"api", "env:API_SECRET"}});

  auto& plain = bindingOf(loaded, "demo/plain");
  CHECK(plain.sandboxKind() == "none");
  CHECK(plain.command == Texts{"sh", "-c", "make"});
  CHECK(plain.env == TextMap{{"LANG", "C.UTF-8"}});
  CHECK(plain.secretEnv == TextMap{{"deploy", "DEPLOY_KEY"}});
  CHECK(plain.checkout == "/home/op/code/demo");
  CHECK(plain.resourceMode == "worktree");
  CHECK(plain.workspaceMode == "worktree");
  CHECK(plain.setup == Texts{"npm", "ci"});
  CHECK(plain.timeoutSeconds == 1800);
  CHECK(plain.stallSeconds == 90);
  CHECK(plain.retries == 2);
  CHECK(plain.maxRuns == 1);

  auto& sandboxed = bindingOf(loaded, "demo/sandboxed");
  CHECK(sandboxed.branch == "agent/{work}");
  CHECK(sandboxed.srt->readAllow == Texts{"~/.ssh/known_hosts"});
  CHECK(texts(sandboxed.srt->networkAllow) == Texts{"example.org:443", "*.example.net"});
  CHECK_FALSE(sandboxed.srt->allUnixSockets);
  CHECK(sandboxed.timeoutSeconds == 0);

  auto& contained = bindingOf(loaded, "demo/contained");
  CHECK(contained.container->networkPrivate == Texts{"10.1.0.0/16", "fd00:1::/32"});
  CHECK(contained.container->pids == 4096);
  CHECK(contained.container->context == "default");
  CHECK_FALSE(contained.container->cpus);
  CHECK(contained.maxTurns == 40);
  CHECK(contained.maxBudgetUsd == 2.5);
  CHECK(loaded.config->findBinding("demo/nothing") == nullptr);
  CHECK(loaded.config->findScope("nothing") == nullptr);
}

TEST_CASE("D1 defaults are the description's and the model's alike") {
  auto loaded = load(R"({"version": 1})");
  REQUIRE(loaded.config);
  Settings defaults;
  CHECK(loaded.config->settings.maxRuns == defaults.maxRuns);
  CHECK(loaded.config->settings.logMaxBytes == defaults.logMaxBytes);
  CHECK(loaded.config->settings.graceSeconds == defaults.graceSeconds);
  auto contained = load(withDocker(""));
  auto& binding = bindingOf(contained, "s/b");
  CHECK(binding.container->pids == ContainerPolicy().pids);
  CHECK(binding.container->context == ContainerPolicy().context);
  CHECK(binding.branch == Binding().branch);
  CHECK(binding.workspaceMode == Binding().workspaceMode);
  CHECK(binding.resourceMode == Binding().resourceMode);
  CHECK(binding.retries == Binding().retries);
}

TEST_CASE("D1 the workspace's mode, said in one place, holds in both") {
  auto inConfig =
      load(withBinding(R"("executor": "shell", "config": {"command": ["true"], "workspace_mode": "worktree"},
    "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}})"));
  CHECK(bindingOf(inConfig, "s/b").resourceMode == "worktree");
  CHECK(bindingOf(inConfig, "s/b").workspaceMode == "worktree");
}

TEST_CASE("D2 a config that is read for one binding has that binding as ever, and is refused like any") {
  auto path = sources() + "/tests/fixtures/config/shell.json";
  auto whole = loadFile(path, {"/home/op"});
  REQUIRE(whole.config);
  size_t count = 0;
  for (auto& scope : whole.config->scopes) {
    for (auto& binding : scope.bindings) {
      auto loaded = loadFileFor(binding.id(), path, {"/home/op"});
      REQUIRE(loaded.config);
      CHECK(loaded.config->scopes.size() == whole.config->scopes.size());
      auto* alone = loaded.config->findBinding(binding.id());
      REQUIRE(alone != nullptr);
      CHECK(alone->command == binding.command);
      CHECK(alone->executorConfig == binding.executorConfig);
      CHECK(loaded.config->findScope(scope.id)->authorization.operations == scope.authorization.operations);
      size_t left = 0;
      for (auto& other : loaded.config->scopes) left += other.bindings.size();
      CHECK(left == 1);
      ++count;
    }
  }
  CHECK(count > 1);
  // What agents of another may have written concerns it.
  auto felt = parseJson(readFile(path, 1 << 20));
  std::string first = whole.config->scopes[0].bindings[0].id(), other;
  for (auto& scope : felt.at("scopes")) {
    for (auto& binding : scope.at("bindings")) {
      auto id = scope.at("id").get<std::string>() + "/" + binding.at("name").get<std::string>();
      if (id == first || !binding.contains("sandbox")) continue;
      binding["sandbox"]["config"]["write"] = {"{workspace}", "~/shared"};
      other = id;
    }
  }
  REQUIRE_FALSE(other.empty());
  std::string feltCopy = "/tmp/oc-config-felt-" + std::to_string(getpid());
  writeFileAtomically(feltCopy, felt.dump(), 0600);
  auto both = loadFileFor(first, feltCopy, {"/home/op"});
  REQUIRE(both.config);
  CHECK(both.config->findBinding(first) != nullptr);
  CHECK(both.config->findBinding(other) != nullptr);
  unlink(feltCopy.c_str());
  // For the list of what there is instead.
  auto none = loadFileFor("no/such", path, {"/home/op"});
  REQUIRE(none.config);
  CHECK(none.config->scopes[0].bindings.size() == whole.config->scopes[0].bindings.size());
  auto bad = readFile(path, 1 << 20);
  bad.insert(bad.rfind('}'), ", \"surplus\": 1");
  std::string copy = "/tmp/oc-config-" + std::to_string(getpid());
  writeFileAtomically(copy, bad, 0600);
  CHECK_FALSE(loadFileFor(whole.config->scopes[0].bindings[0].id(), copy, {"/home/op"}).config);
  unlink(copy.c_str());
}

TEST_CASE("D2 a config that all users can write is pointed out") {
  std::string path = "/tmp/oc-config-open-" + std::to_string(getpid());
  writeFileAtomically(path, R"({"version": 1})", 0644);
  CHECK(loadFile(path, {"/home/op"}).diagnostics.empty());
  REQUIRE(chmod(path.c_str(), 0666) == 0);
  auto loaded = loadFile(path, {"/home/op"});
  REQUIRE(loaded.config);
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics[0].severity == Diagnostic::Severity::Warning);
  CHECK(loaded.diagnostics[0].message.find("all users of this machine can write the file") == 0);
  unlink(path.c_str());
}

TEST_CASE("D1 durations are strings with a unit, or seconds") {
  for (auto [text, seconds] :
       {std::pair{"\"90s\"", 90}, {"\"30m\"", 1800}, {"\"2h\"", 7200}, {"\"1d\"", 86400}, {"45", 45}}) {
    auto loaded = load(withShell("\"timeout\": " + std::string(text)));
    CHECK(bindingOf(loaded, "s/b").timeoutSeconds == static_cast<uint64_t>(seconds));
  }
}

TEST_CASE("D2 a config with errors is no config, and every problem is reported at once, by position") {
  auto loaded = load(R"({"version": 2,
    "settings": {"max_rums": 3, "grace": "soon"},
    "scopes": [{"id": "a b", "bindings": [{"name": "x", "executor": "shel", "config": {}}]}, {"id": 5}]})");
  INFO(rendered(loaded));
  CHECK_FALSE(loaded.config);
  CHECK(loaded.diagnostics.size() == 6);
  for (size_t i = 1; i < loaded.diagnostics.size(); ++i) {
    auto &before = loaded.diagnostics[i - 1], &after = loaded.diagnostics[i];
    CHECK((before.line < after.line || (before.line == after.line && before.column <= after.column)));
  }
  for (auto& diagnostic : loaded.diagnostics) {
    CHECK_FALSE(diagnostic.message.empty());
    CHECK_FALSE(diagnostic.fix.empty());
    CHECK_FALSE(diagnostic.field.empty());
  }
}

TEST_CASE("D2 a diagnostic is shown with file, place, field, message, reason and fix") {
  Diagnostic diagnostic{Diagnostic::Severity::Error, 41,     18,          "scopes[0].bindings[0].container",
                        "sandbox_conflict",          "both", "delete one"};
  CHECK(render(diagnostic, "config.json") ==
        "config.json:41:18: error: scopes[0].bindings[0].container: both (sandbox_conflict)\n  fix: delete one");
  Diagnostic ofFile{Diagnostic::Severity::Warning, 0, 0, "", "", "it is odd", ""};
  CHECK(render(ofFile, "a.json") == "a.json: warning: it is odd");
}

TEST_CASE("D2 what stands in the config can't drive the terminal that shows its problems") {
  auto loaded = load("{\"version\": 1, \"\\u001b]52;c;x\\u0007\": 1, \"scopes\": [{\"id\": \"\\u001b[2J\\u202e\"}]}");
  CHECK(loaded.hasErrors());
  for (unsigned char c : rendered(loaded)) CHECK((c >= 0x20 || c == '\n'));
  CHECK(rendered(loaded).find("\xE2\x80\xAE") == std::string::npos);
}

TEST_CASE("D2 files that can't be read are one diagnostic") {
  TemporaryDirectory directory;
  auto message = [](const std::string& path) {
    auto loaded = loadFile(path, {"/home/op"});
    CHECK_FALSE(loaded.config);
    REQUIRE(loaded.diagnostics.size() == 1);
    return loaded.diagnostics[0].message;
  };
  CHECK(message(directory.path + "/none.json") == "there is no such file");
  CHECK(message(directory.path) == "it is not a file");
  REQUIRE(mkfifo((directory.path + "/fifo").c_str(), 0600) == 0);
  CHECK(message(directory.path + "/fifo") == "it is not a file");
  CHECK(message("/dev/zero") == "it is not a file");

  auto large = directory.path + "/large.json";
  {
    auto fd = openFile(large, O_WRONLY | O_CREAT);
    REQUIRE(ftruncate(fd, 50 << 20) == 0);
  }
  CHECK(message(large) == "the file is larger than 4 MiB");

  auto good = directory.path + "/good.json";
  writeFileAtomically(good, fixture("shell.json"));
  auto loaded = loadFile(good, {"/home/op"});
  REQUIRE(loaded.config);
  CHECK(loaded.config->path == good);
  if (geteuid() != 0) {
    REQUIRE(chmod(good.c_str(), 0) == 0);
    CHECK(message(good).find("can't be opened") != std::string::npos);
  }
}

TEST_CASE("D2 whatever the text, the answer is a config or at least one error") {
  std::mt19937 random(20240607);
  auto below = [&random](size_t bound) { return std::uniform_int_distribution<size_t>(0, bound - 1)(random); };
  const std::string pieces[] = {"{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "\"",
                                "null",
                                "true",
                                "-1",
                                "1e999",
                                "\\u0000",
                                "\xFF",
                                "~",
                                "..",
                                "{x}",
                                "\n",
                                "\"\"",
                                "9223372036854775808",
                                "0.5",
                                "\\ud800",
                                "*",
                                "//"};
  int accepted = 0, refused = 0;
  for (auto name : {"container.json", "srt.json", "shell.json"}) {
    auto original = fixture(name);
    for (int round = 0; round < 700; ++round) {
      auto text = original;
      for (size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
        size_t at = below(text.size());
        switch (below(5)) {
          case 0: text[at] = static_cast<char>(below(256)); break;
          case 1: text.erase(at, 1 + below(12)); break;
          case 2: text.insert(at, pieces[below(std::size(pieces))]); break;
          case 3: text.insert(at, text.substr(below(text.size()), below(200))); break;
          case 4: text.resize(at); break;
        }
      }
      auto loaded = load(text);
      loaded.config ? ++accepted : ++refused;
      bool sound = loaded.config.has_value() == !loaded.hasErrors();
      if (!sound) FAIL("neither a config nor an error: " << text);
      for (auto& diagnostic : loaded.diagnostics) {
        if (diagnostic.message.empty() || render(diagnostic, "x").empty()) FAIL("an empty diagnostic: " << text);
      }
    }
  }
  // Both happen, else the mutations test nothing.
  CHECK(accepted > 10);
  CHECK(refused > 500);
}

TEST_CASE("D2 values of the wrong type anywhere never bring the checker down") {
  const char* values[] = {"null", "true", "7", "1.5", "\"x\"", "[]", "{}", "[[]]", "[{}]", "{\"config\": []}"};
  for (auto name : {"container.json", "srt.json", "shell.json"}) {
    auto original = parseJson(fixture(name));
    auto places = original.flatten();
    for (auto& [pointer, value] : places.items()) {
      for (Json::json_pointer place(pointer); !place.empty(); place = place.parent_pointer()) {
        for (auto replacement : values) {
          auto changed = original;
          changed[place] = parseJson(replacement);
          auto loaded = load(changed.dump());
          if (loaded.config.has_value() == loaded.hasErrors()) FAIL(place.to_string() << " = " << replacement);
        }
      }
    }
  }
  SUCCEED();
}
