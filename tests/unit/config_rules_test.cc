// One row per diagnostic, with its exact place, and beside each what is accepted.
#include "config_support.h"

using namespace oc::config::testing;

namespace {

const std::string digest = "sha256:" + std::string(64, 'a');

std::string withScope(const std::string& fields) {
  return "{\"version\": 1, \"scopes\": [{\"id\": \"s\"" + fields + "}]}";
}

// A scope with a GitHub connection, `scope` besides, and one shell binding with `binding` besides.
std::string withGitHub(const std::string& scope, const std::string& binding) {
  return R"({"version": 1, "connections": [{"id": "github", "type": "github", "config": {"auth": "token"},
    "secret_refs": {"token": "keyring:t"}}],
    "scopes": [{"id": "s", )" +
         scope + R"("bindings": [{"name": "b", "executor": "shell", "config": {"command": ["true"]})" + binding +
         "}]}]}";
}

}  // namespace

TEST_CASE("D2 the config is an object of version 1") {
  checkError("§[]", "", "must be an object, not an array");
  checkError("§{}", "version", "required", "add \"version\"");
  checkError("{\"version\": §2}", "version", "must be 1");
  checkError("{\"version\": §\"1\"}", "version", "must be a whole number, not a string", "without quotes");
  checkError("{\"version\": §1.0}", "version", "must be a whole number");
  checkClean("{\"version\": 1}");
  checkClean("{\"$schema\": \"config.schema.json\", \"version\": 1}");
}

TEST_CASE("D2 an unknown field is named, with what may have been meant") {
  checkError("{\"version\": 1, §\"scope\": []}", "scope", "no such field", "did you mean \"scopes\"?");
  checkError("{\"version\": 1, \"settings\": {§\"max_rums\": 1}}", "settings.max_rums", "no such field",
             "did you mean \"max_runs\"?");
  checkError(withShell("§\"timeuot\": 5"), "scopes[0].bindings[0].timeuot", "no such field", "\"timeout\"");
  checkError(withDocker("§\"cpus\": 5"), "scopes[0].bindings[0].container.config.cpus", "no such field",
             "scopes[].bindings[].container.config.limits.cpus");
  checkError(withSrt("\"network\": {§\"private\": []}"), "scopes[0].bindings[0].sandbox.config.network.private",
             "no such field", "container.config.network.private");
  checkError("{\"version\": 1, §\"zzzzzzzz\": 1}", "zzzzzzzz", "no such field", "the fields here are $schema, version");
}

TEST_CASE("D2 a wrong type is named") {
  checkError("{\"version\": 1, \"scopes\": §{}}", "scopes", "must be an array, not an object", "in brackets");
  checkError("{\"version\": 1, \"settings\": §[]}", "settings", "must be an object, not an array");
  checkError("{\"version\": 1, \"settings\": §null}", "settings", "must be an object, not null", "leave the field out");
  checkError(withScope(", \"name\": §5"), "scopes[0].name", "must be a string, not a number", "double quotes");
  checkError(withShell("\"secret_names\": §\"key\""), "scopes[0].bindings[0].secret_names", "must be an array",
             "brackets");
  checkError(withShell("\"requires\": {\"workspace\": §\"yes\"}"), "scopes[0].bindings[0].requires.workspace",
             "must be true or false");
  checkError(withShell("\"timeout\": §[]"), "scopes[0].bindings[0].timeout", "must be a duration", "30m");
  checkError(withDocker("\"limits\": {\"cpus\": §\"4\"}"), "scopes[0].bindings[0].container.config.limits.cpus",
             "must be a number");
}

TEST_CASE("D2 a number out of range is named with its range") {
  checkError("{\"version\": 1, \"settings\": {\"max_runs\": §0}}", "settings.max_runs", "out of range",
             "from 1 to 1000");
  checkError("{\"version\": 1, \"settings\": {\"max_runs\": §-9223372036854775809}}", "settings.max_runs",
             "out of range");
  checkError("{\"version\": 1, \"settings\": {\"max_runs\": §1e300}}", "settings.max_runs", "out of range");
  checkError("{\"version\": 1, \"settings\": {\"max_runs\": §1.5}}", "settings.max_runs", "whole number");
  checkError("{\"version\": 1, \"settings\": {\"log_max_bytes\": §10}}", "settings.log_max_bytes", "out of range",
             "from 65536");
  checkError(withShell("\"timeout\": §0"), "scopes[0].bindings[0].timeout", "out of range");
  checkError(withShell("\"timeout\": §\"31d\""), "scopes[0].bindings[0].timeout", "out of range");
  checkError(withShell("\"timeout\": §-5"), "scopes[0].bindings[0].timeout", "out of range");
  checkError(withShell("\"timeout\": §1.5"), "scopes[0].bindings[0].timeout", "whole numbers");
  for (auto text : {"\"5\"", "\"m\"", "\"\"", "\"5 m\"", "\"1h30m\"", "\"5M\"", "\"-5m\"", "\"9999999999999d\""}) {
    checkError(withShell("\"timeout\": §" + std::string(text)), "scopes[0].bindings[0].timeout", "no duration", "90s");
  }
  checkError(withDocker("\"limits\": {\"pids\": §1}"), "scopes[0].bindings[0].container.config.limits.pids",
             "out of range");
  checkClean("{\"version\": 1, \"settings\": {\"grace\": 0}}");
}

TEST_CASE("D2 a required field that is missing is named where it belongs") {
  checkError("{\"version\": 1, \"scopes\": [§{}]}", "scopes[0].id", "required");
  checkError(withScope(", \"bindings\": [§{\"name\": \"b\", \"executor\": \"shell\"}]"), "scopes[0].bindings[0].config",
             "required");
  checkError(withBinding("\"executor\": \"shell\", \"config\": §{}"), "scopes[0].bindings[0].config.command",
             "required");
  checkError(withBinding("\"executor\": \"shell\", \"config\": {\"command\": §[]}"),
             "scopes[0].bindings[0].config.command", "is empty");
  checkError(withBinding("\"executor\": \"shell\", \"config\": {\"command\": [§\"\"]}"),
             "scopes[0].bindings[0].config.command[0]", "name is empty");
  checkError(withBinding("\"executor\": \"shell\", \"config\": {\"command\": §[\"sh\", \"" + std::string(60'000, 'x') +
                         "\", \"" + std::string(60'000, 'x') + "\"]}"),
             "scopes[0].bindings[0].config.command", "longer than 100 KiB", "script");
}

TEST_CASE("D2 a value that is none of the known ones is named, with what may have been meant") {
  checkError(withBinding("\"executor\": §\"shel\", \"config\": {}"), "scopes[0].bindings[0].executor",
             "\"shel\" is not known", "did you mean \"shell\"?");
  checkError(withShell("\"sandbox\": {\"provider\": §\"bubblewrap\", \"config\": {}}"),
             "scopes[0].bindings[0].sandbox.provider", "not known", "write \"srt\"");
  checkError(withShell("\"container\": {\"provider\": §\"doker\", \"config\": {}}"),
             "scopes[0].bindings[0].container.provider", "not known", "\"docker\"");
  checkError(withSrt("\"unix_sockets\": §\"some\""), "scopes[0].bindings[0].sandbox.config.unix_sockets", "not known",
             "write \"all\"");
}

TEST_CASE("D2 a name is made of letters, digits and three marks") {
  auto named = [](const std::string& name) { return "{\"version\": 1, \"scopes\": [{\"id\": §\"" + name + "\"}]}"; };
  checkError(named("a\\u0007b"), "scopes[0].id", "control characters");
  checkError(named("a\\u0085b"), "scopes[0].id", "control characters");
  checkError(named(""), "scopes[0].id", "empty");
  checkError(named(std::string(65, 'a')), "scopes[0].id", "longer than 64");
  checkError(named("a b"), "scopes[0].id", "can't have");
  checkError(named("a/b"), "scopes[0].id", "can't have");
  checkError(named("é"), "scopes[0].id", "can't have");
  checkError(named("-a"), "scopes[0].id", "begins with '-'");
  checkError(named("."), "scopes[0].id", "begins with '.'");
  checkClean("{\"version\": 1, \"scopes\": [{\"id\": \"" + std::string(64, 'a') + "\"}, {\"id\": \"A.b_c-9\"}]}");
  checkError(withScope(", \"name\": §\"a\\nb\""), "scopes[0].name", "control characters");
  checkError(withScope(", \"secret_refs\": {§\"a b\": \"env:A\"}"), "scopes[0].secret_refs[\"a b\"]", "can't have");
}

TEST_CASE("D2 ids and names are there once") {
  checkError("{\"version\": 1, \"scopes\": [{\"id\": \"a\"},\n {\"id\": §\"a\"}]}", "scopes[1].id",
             "another scope \"a\" in line 1", "another name");
  auto connection = [](const std::string& id) {
    return "{\"id\": " + id + R"(, "type": "github", "config": {"auth": "token"}, "secret_refs": {"token": "env:T"}})";
  };
  checkError("{\"version\": 1, \"connections\": [" + connection("\"a\"") + "," + connection("§\"a\"") + "]}",
             "connections[1].id", "another connection");
  std::string binding = R"(, "executor": "shell", "config": {"command": ["true"]}})";
  checkError(withScope(", \"bindings\": [{\"name\": \"x\"" + binding + ", {\"name\": §\"x\"" + binding + "]"),
             "scopes[0].bindings[1].name", "another binding");
  checkClean("{\"version\": 1, \"scopes\": [{\"id\": \"a\", \"bindings\": [{\"name\": \"x\"" + binding +
             "]}, {\"id\": \"b\", \"bindings\": [{\"name\": \"x\"" + binding + "]}]}");
}

TEST_CASE("D2 a path is absolute, or begins in a home or a place of the run's") {
  auto checkout = [](const std::string& path) {
    return withBinding(
        R"("executor": "shell", "config": {"command": ["true"]}, "resource": {"provider": "git", "config": {"checkout": )" +
        path + "}}");
  };
  std::string field = "scopes[0].bindings[0].resource.config.checkout";
  checkError(checkout("§\"code/demo\""), field, "\"code/demo\" is a relative path", "absolute path (/…) or ~/…");
  checkError(checkout("§\"\""), field, "empty");
  checkError(checkout("§\"./demo\""), field, "relative");
  checkError(checkout("§\"$HOME/demo\""), field, "variables are not expanded");
  checkError(checkout("§\"~other/demo\""), field, "another user's home");
  checkError(checkout("§\"{workspace}\""), field, "relative path");
  checkError(checkout("§\"/a/../b\""), field, "\"..\"");
  checkError(checkout("§\"/a\\u0000b\""), field, "control characters");
  checkError(checkout("§\"/" + std::string(4096, 'a') + "\""), field, "longer than 4095");
  checkClean(checkout("\"/a/..b/c d\""));
  checkClean(checkout("\"~\""));
  checkError("{\"version\": 1, \"settings\": {\"extensions\": {\"srt\": {\"node\": §\"~/node\"}}}}",
             "settings.extensions.srt.node", "~ is not expanded here");

  field = "scopes[0].bindings[0].sandbox.config.write[0]";
  checkError(withSrt("\"write\": [§\"cache\"]"), field, "relative path", "{workspace}/… or {run}/…");
  checkError(withSrt("\"write\": [§\"{workspce}/x\"]"), field, "no placeholder \"{workspce}\"",
             "did you mean {workspace}?");
  checkError(withSrt("\"write\": [§\"{toolbelt}\"]"), field, "no placeholder");
  checkError(withSrt("\"write\": [§\"{workspace\"]"), field, "isn't closed");
  checkError(withSrt("\"write\": [§\"{workspace}x\"]"), field, "'/' is missing");
  checkError(withSrt("\"write\": [§\"{workspace}/../..\"]"), field, "\"..\"");
  checkError(withSrt("\"write\": [§\"/tmp/*\"]"), field, "no patterns");
  checkError(withSrt("\"unix_sockets\": \"all\", \"sockets\": [§\"{toolbelt}/x\"]"),
             "scopes[0].bindings[0].sandbox.config.sockets[0]", "nothing can follow");
  checkClean(withSrt(
      "\"write\": [\"{workspace}\", \"{run}/x\", \"~/.npm\", \"/srv/cache\"], \"unix_sockets\": \"all\", \"sockets\": [\"{toolbelt}\", \"/run/x.sock\"]"));
}

TEST_CASE("D2 what a name refers to must be there, with what may have been meant") {
  checkError(withShell("\"secret_names\": [§\"kee\"]"), "scopes[0].bindings[0].secret_names[0]", "no secret \"kee\"",
             "did you mean \"key\"?");
  checkAccepted(withShell("\"secret_names\": [\"key\"]"));
  checkError(withShell("\"connection\": §\"github\""), "scopes[0].bindings[0].connection", "no connection \"github\"");
  checkError(withGitHub("\"authorization\": {\"connections\": [\"github\"]}, ", ", \"connection\": §\"gihub\""),
             "scopes[0].bindings[0].connection", "no connection", "did you mean \"github\"?");
  checkError(withGitHub("", ", \"connection\": §\"github\""), "scopes[0].bindings[0].connection", "isn't authorized",
             "scopes[0].authorization.connections");
  checkClean(withGitHub("\"authorization\": {\"connections\": [\"github\"]}, ", ", \"connection\": \"github\""));
  checkError(withGitHub("\"authorization\": {\"connections\": [§\"gitub\"]}, ", ""),
             "scopes[0].authorization.connections[0]", "no connection", "\"github\"");
  checkError(withScope(", \"authorization\": {\"read_scopes\": [§\"t\"]}"), "scopes[0].authorization.read_scopes[0]",
             "no scope \"t\"");

  std::string github =
      R"("authorization": {"connections": ["github"]}, "extensions": [{"name": "e", "type": "github", "connection": "github", "config": )";
  auto route = [](const std::string& fields) { return "\"routes\": [{\"name\": \"r\", " + fields + "}], "; };
  checkClean(withGitHub(
      github + R"({"repo": "o/r", "scope": "s"}}], )" + route(R"("handler": "github", "binding": "b")"), ""));
  checkError(withGitHub(github + R"({"repo": "o/r", "scope": §"t"}}], )", ""), "scopes[0].extensions[0].config.scope",
             "not the scope");
  checkError(withGitHub(github + R"({"repo": §"r"}}], )", ""), "scopes[0].extensions[0].config.repo", "no repository");
  checkError(withGitHub(github + R"({"repo": "o/r"}}], )" + route(R"("handler": "github", "binding": §"c")"), ""),
             "scopes[0].routes[0].binding", "no binding \"c\"");
  checkError(withGitHub(route(R"("handler": §"github", "binding": "b")"), ""), "scopes[0].routes[0].handler",
             "no extension of this type");
  checkError(withGitHub(github + R"({"repo": "o/r"}}], )" +
                            route(R"("handler": "github", "binding": "b", "active_policy": §"inject")"),
                        ""),
             "scopes[0].routes[0].active_policy", "live run of the executor shell");
}

TEST_CASE("D3 secrets are referred to, never written down") {
  auto secret = [](const std::string& reference) { return withScope(", \"secret_refs\": {\"a\": " + reference + "}"); };
  for (auto reference : {"keyring:name", "file:/etc/key", "env:NAME"})
    checkClean(secret("\"" + std::string(reference) + "\""));
  for (auto reference : {"hunter2", "keyring", "vault:x", ""}) {
    checkError(secret("§\"" + std::string(reference) + "\""), "scopes[0].secret_refs.a", "no reference to a secret",
               "keyring:NAME");
  }
  checkError(secret("§\"keyring:\""), "scopes[0].secret_refs.a", "empty");
  checkError(secret("§\"keyring:a b\""), "scopes[0].secret_refs.a", "can't have");
  checkError(secret("§\"file:key\""), "scopes[0].secret_refs.a", "relative");
  checkError(secret("§\"file:~/key\""), "scopes[0].secret_refs.a", "~ is not expanded");
  checkError(secret("§\"env:1A\""), "scopes[0].secret_refs.a", "environment variable");
  auto loaded = load(secret("\"ghp_0123456789\""));
  CHECK(rendered(loaded).find("ghp_") == std::string::npos);
}

TEST_CASE("D3 a secret reaches a variable only when it was selected") {
  auto with = [](const std::string& secretEnv, const std::string& env, const std::string& names) {
    return withBinding(R"("executor": "shell", "secret_names": [)" + names +
                       R"(], "config": {"command": ["true"], "secret_env": {)" + secretEnv + "}, \"env\": {" + env +
                       "}}");
  };
  checkClean(with("\"key\": \"KEY\"", "", "\"key\""));
  checkError(with("§\"key\": \"KEY\"", "", ""), "scopes[0].bindings[0].config.secret_env.key", "isn't among",
             "secret_names");
  checkError(with("§\"kay\": \"KEY\"", "", "\"key\""), "scopes[0].bindings[0].config.secret_env.kay", "isn't among",
             "did you mean \"key\"?");
  checkError(with("\"key\": §\"1KEY\"", "", "\"key\""), "scopes[0].bindings[0].config.secret_env.key",
             "environment variable");
  checkError(with("\"key\": §\"KEY\"", "\"KEY\": \"x\"", "\"key\""), "scopes[0].bindings[0].config.secret_env.key",
             "sets this variable too");
  checkError(with("\"key\": §\"OPEN_CONDUIT_X\"", "", "\"key\""), "scopes[0].bindings[0].config.secret_env.key",
             "OPEN_CONDUIT_");
  checkError(with("", "§\"A=B\": \"x\"", ""), "scopes[0].bindings[0].config.env[\"A=B\"]", "environment variable");
  checkError(with("", "\"A\": §\"x\\u0000y\"", ""), "scopes[0].bindings[0].config.env.A", "NUL");
  checkError(with("", "\"OPEN_CONDUIT_TITLE\": §\"x\"", ""), "scopes[0].bindings[0].config.env.OPEN_CONDUIT_TITLE",
             "set by Open Conduit");
}

TEST_CASE("D4 operations have names, toolsets are known") {
  auto operations = [](const std::string& text) {
    return withScope(", \"authorization\": {\"operations\": [" + text + "]}");
  };
  checkClean(operations("\"github.git.credential\", \"@github.author\", \"@github.workspace\""));
  checkError(operations("§\"@github.autor\""), "scopes[0].authorization.operations[0]", "no toolset",
             "did you mean @github.author?");
  for (auto text :
       {"", "@", "github", "GitHub.git", "github..git", "github.git ", "git\\u043dub.git.credential", "*"}) {
    checkError(operations("§\"" + std::string(text) + "\""), "scopes[0].authorization.operations[0]", "no operation");
  }
}

TEST_CASE("D6 what a binding requires, its executor and resource can do") {
  std::string field = "scopes[0].bindings[0].requires.";
  checkError(withShell("\"requires\": {\"inject\": §true}"), field + "inject", "can't inject");
  checkError(withShell("\"requires\": {\"resume\": §true}"), field + "resume", "can't resume");
  checkClean(withShell("\"requires\": {\"inject\": false, \"workspace\": true, \"toolbelt\": \"mcp\"}"));
  checkError(
      withBinding(
          "\"executor\": \"shell\", \"config\": {\"command\": [\"true\"]}, \"requires\": {\"workspace\": §true}"),
      field + "workspace", "no resource");
  checkError(withSrt("\"unix_sockets\": \"all\"", "\"requires\": {\"toolbelt\": §\"mpc\"}"), field + "toolbelt",
             "not known");
  checkError(withSrt("", "\"requires\": {\"toolbelt\": §\"mcp\"}"), field + "toolbelt", "toolbelt's socket",
             "unix_sockets");
  checkError(withShell("\"max_turns\": §3"), "scopes[0].bindings[0].max_turns", "only the executor claude-code");
  checkError(withShell("\"max_budget_usd\": §3"), "scopes[0].bindings[0].max_budget_usd",
             "only the executor claude-code");
}

TEST_CASE("D2 a branch's template makes a name that git takes") {
  auto branch = [](const std::string& text) {
    return withBinding(R"("executor": "shell", "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}},
      "config": {"command": ["true"], "branch": )" +
                       text + "}");
  };
  for (auto text : {"agent/{work}", "{run}", "a/{work}/b"}) checkClean(branch("\"" + std::string(text) + "\""));
  checkWarning(branch("§\"agent/issue-{number}\""), "scopes[0].bindings[0].config.branch", "no route brings issues");
  std::string field = "scopes[0].bindings[0].config.branch";
  checkError(branch("§\"agent/{issue}\""), field, "no placeholder \"{issue}\"", "{work}, {run} and {number}");
  checkError(branch("§\"agent/{work\""), field, "isn't closed");
  checkError(branch("§\"agent/work}\""), field, "without its '{'");
  for (auto text : {"", "-{work}", "a b{work}", "a..{work}", "{work}/", "{work}.lock", "a//{work}", "a@{{work}",
                    ".a/{work}", "a/.{work}", "a~{work}", "a\\u007f{work}"}) {
    checkError(branch("§\"" + std::string(text) + "\""), field, "");
  }
  checkError(withBinding("\"executor\": \"shell\", \"config\": {\"command\": [\"true\"], \"branch\": §\"a/{work}\"}"),
             field, "no resource");
}

TEST_CASE("D1 a connection has what its way to sign in needs") {
  auto connection = [](const std::string& config, const std::string& secrets) {
    return "{\"version\": 1, \"connections\": [§{\"id\": \"c\", \"type\": \"github\", \"config\": " + config +
           ", \"secret_refs\": {" + secrets + "}}]}";
  };
  checkError(connection("{\"auth\": \"app\", \"app_id\": \"1\"}", ""), "connections[0]",
             "needs the secret \"app_private_key\"", "keyring:NAME");
  checkError(connection("{\"auth\": \"token\"}", ""), "connections[0]", "needs the secret \"token\"");
  auto app =
      R"({"version": 1, "connections": [{"id": "c", "type": "github", "config": {"auth": "app", "app_id": "1", "git": "bot"},
    "secret_refs": {"app_private_key": "env:K"}}]})";
  checkClean(app);
  CHECK(load(app).config->connections[0].gitAsBot);
  checkError(
      R"({"version": 1, "connections": [{"id": "c", "type": "github", "config": §{"auth": "app"}, "secret_refs": {"app_private_key": "env:K"}}]})",
      "connections[0].config", "needs \"app_id\"");
}

TEST_CASE("D3 a secret that goes into no variable is pointed out, and one with a variable's name goes into that") {
  std::string scope =
      R"({"version": 1, "scopes": [{"id": "s", "secret_refs": {"key": "env:A", "GH_TOKEN": "env:B", "1X": "env:C"}, "bindings": [
    {"name": "b", "executor": "shell", "secret_names": [)";
  std::string rest = R"(], "config": {"command": ["true"], "secret_env": {"key": "KEY"}}}]}]})";
  checkClean(scope + "\"key\", \"GH_TOKEN\"" + rest);
  checkWarning(scope + "\"key\", §\"1X\"" + rest, "scopes[0].bindings[0].secret_names[1]", "goes into no variable");
}

TEST_CASE("D4 an operation that this version does not have is pointed out, with what may have been meant") {
  auto operations = [](const std::string& text) {
    return withScope(", \"authorization\": {\"operations\": [" + text + "]}");
  };
  checkWarning(operations("§\"github.git.credental\""), "scopes[0].authorization.operations[0]",
               "no operation \"github.git.credental\"");
  CHECK(load(operations("\"github.git.credental\"")).diagnostics.at(0).fix ==
        "did you mean \"github.git.credential\"?");
  checkClean(operations("\"conduit.work.get\", \"@conduit.work\""));
  checkWarning(withShell("\"operations\": [§\"github.issue.get\"]"), "scopes[0].bindings[0].operations[0]",
               "no connection that this could use");
}

TEST_CASE("E2 a GitHub extension has a connection") {
  checkError(
      R"({"version": 1, "scopes": [{"id": "s", "extensions": [§{"name": "e", "type": "github", "config": {"repo": "o/r"}}]}]})",
      "scopes[0].extensions[0]", "needs a connection", "add \"connection\"");
}

// ---- what is rarely seen

namespace {

std::string repeated(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

// One binding on a GitHub App, in srt or in a container.
std::string withApp(const std::string& connection, const std::string& policy, const std::string& authorization,
                    const std::string& operations, const std::string& mark) {
  return R"({"version": 1, "connections": [{"id": "github", "type": "github", "config": {"auth": "app", "app_id": "1")" +
         connection + R"(}, "secret_refs": {"app_private_key": "keyring:k"}}],
    "scopes": [{"id": "s", "authorization": {"connections": ["github"], "operations": [)" +
         authorization + R"(]}, "bindings": [)" + mark +
         R"({"name": "b", "executor": "shell", "connection": "github", "config": {"command": ["true"]}, "operations": [)" +
         operations + R"(], "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}}, )" + policy + "}]}]}";
}

}  // namespace

TEST_CASE("D2 bounds of a file and of its parts are told where they are passed") {
  checkError("[" + repeated("0,", 199'999) + "§0]", "", "more than 200000 values");
  checkError(repeated("[", 64) + "§[" + repeated("]", 65), repeated("[0]", 63), "more than 64 levels");
  checkWarning("§\xEF\xBB\xBF{\"version\": 1}", "", "byte order mark");
  checkError(withShell("\"secret_names\": §[" + repeated("\"key\",", 10'000) + "\"key\"]"),
             "scopes[0].bindings[0].secret_names", "has 10001 entries, more than 10000");
  checkError(withScope(", \"name\": §\"\""), "scopes[0].name", "is empty", "a word or two");
  checkError(withScope(", \"name\": §\"" + std::string(201, 'x') + "\""), "scopes[0].name", "longer than 200 bytes");
  checkError(withBinding("\"executor\": \"shell\", \"config\": {\"command\": [\"true\"], \"env\": {\"A\": §\"" +
                         std::string((64u << 10) + 1, 'x') + "\"}}"),
             "scopes[0].bindings[0].config.env.A", "longer than 64 KiB");
  auto environment = [](const std::string& mark, size_t last) {
    std::string variables;
    for (auto name : {"A", "B", "C", "D", "E", "F", "G"})
      variables += "\"" + std::string(name) + "\": \"" + std::string(64u << 10, 'x') + "\", ";
    return withBinding("\"executor\": \"shell\", \"config\": {\"command\": [\"true\"], \"env\": " + mark + "{" +
                       variables + "\"H\": \"" + std::string(last, 'x') + "\"}}");
  };
  checkClean(environment("", (64u << 10) - 8));
  checkError(environment("§", (64u << 10) - 7), "scopes[0].bindings[0].config.env", "together longer than 512 KiB",
             "into a file");
  checkError(withShell("\"container\": {\"provider\": \"docker\", \"config\": {\"image\": §\"\"}}"),
             "scopes[0].bindings[0].container.config.image", "the image is empty");
  checkError(withBinding("\"executor\": \"shell\", \"secret_names\": [\"key\"], \"config\": {\"command\": [\"true\"], "
                         "\"secret_env\": {\"key\": \"A\", \"other\": §\"A\"}}"),
             "scopes[0].bindings[0].config.secret_env.other", "already goes into this variable");
}

TEST_CASE("D2 C9 what a GitHub connection needs is told where it is missing") {
  auto connection = [](const std::string& config) {
    return "{\"version\": 1, \"connections\": [{\"id\": \"g\", \"type\": \"github\", \"config\": {" + config +
           "}, \"secret_refs\": {\"token\": \"keyring:t\", \"app_private_key\": \"keyring:k\"}}]}";
  };
  checkError(connection(R"("auth": "token", "git": §"bot")"), "connections[0].config.git", "only an App's tokens");
  checkError(connection(R"("auth": "app", "app_id": §"1 2")"), "connections[0].config.app_id", "no App's id");
  checkError(connection(R"("auth": "token", "api_url": §"http://ghe.example")"), "connections[0].config.api_url",
             "no address of an API");
  std::string bot = R"(, "git": "bot")", workspace = R"("@github.workspace")";
  auto srt = [](const std::string& allow) {
    return R"("sandbox": {"provider": "srt", "config": {"write": ["{workspace}"], "network": {"allow": )" + allow +
           "}}}";
  };
  auto github = srt(R"(["github.com"])");
  checkWarning(withApp(bot, srt("§[]"), workspace, workspace, ""), "scopes[0].bindings[0].sandbox.config.network.allow",
               "runs cannot reach github.com");
  checkWarning(withApp(bot, github, workspace, "", "§"), "scopes[0].bindings[0]",
               "the binding does not list github.git.credential");
  checkWarning(withApp(bot, github, "", workspace, "§"), "scopes[0].bindings[0]",
               "the scope's authorization does not list github.git.credential");
  auto docker = R"("container": {"provider": "docker", "config": {"image": "a@)" + digest +
                R"(", "write": ["{workspace}"], "network": {"allow": ["github.com"]}}})";
  checkWarning(withApp("", docker, workspace, "", "§"), "scopes[0].bindings[0]",
               "isn't among the binding's operations");
  checkWarning(withApp("", docker, "", workspace, "§"), "scopes[0].bindings[0]",
               "the scope's authorization doesn't have github.git.credential");
  checkWarning(withDocker("\"network\": {\"private\": [§\"127.0.0.0/8\"]}"),
               "scopes[0].bindings[0].container.config.network.private[0]", "the gateway's own loopback");
}
