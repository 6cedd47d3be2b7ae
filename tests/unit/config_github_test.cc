// What a config says of GitHub.
#include "config_support.h"
#include "tests/catch.h"

namespace oc::config {
namespace {

using namespace testing;

std::string withConnection(const std::string& config, const std::string& secrets, const std::string& rest = "") {
  return "{\"version\": 1, \"connections\": [\n{\"id\": \"g\", \"type\": \"github\", \"config\": {" + config +
         "}, \"secret_refs\": {" + secrets + "}}]" + rest + "}";
}

const std::string app = "\"auth\": \"app\", \"app_id\": \"1\"";
const std::string key = "\"app_private_key\": \"keyring:k\"";

bool reports(const Loaded& loaded, const std::string& words) {
  return rendered(loaded).find(words) != std::string::npos;
}

TEST_CASE("E1 a connection's settings are read, and each secret that they need is asked for") {
  auto whole = load(withConnection(
      app + R"(, "api_url": "https://git.example.org:8443/api/v3", "ca_file": "/etc/ca.pem", "bot_app_id": "2",
      "poll_interval": "2m", "webhook_port": 8787)",
      key + R"(, "bot_private_key": "keyring:b", "webhook_secret": "keyring:w")"));
  INFO(rendered(whole));
  REQUIRE(whole.config.has_value());
  auto& connection = whole.config->connections.at(0);
  CHECK(connection.apiUrl == "https://git.example.org:8443/api/v3");
  CHECK(connection.caFile == "/etc/ca.pem");
  CHECK(connection.botAppId == "2");
  CHECK(connection.pollSeconds == 120);
  CHECK(connection.webhookPort == 8787);
  CHECK(connection.secretRefs.at("webhook_secret") == "keyring:w");
  auto plain = load(withConnection(app, key));
  REQUIRE(plain.config.has_value());
  CHECK(plain.config->connections.at(0).apiUrl == "https://api.github.com");
  CHECK(plain.config->connections.at(0).pollSeconds == 60);

  CHECK(reports(load(withConnection(app, "")), "app_private_key"));
  CHECK(reports(load(withConnection("\"auth\": \"app\"", key)), "app_id"));
  CHECK(reports(load(withConnection("\"auth\": \"token\"", "")), "\"token\""));
  CHECK(reports(load(withConnection(app + ", \"bot_app_id\": \"2\"", key)), "bot_private_key"));
  CHECK(reports(load(withConnection(app + ", \"webhook_port\": 80", key)), "webhook_secret"));
  CHECK(reports(load(withConnection("\"auth\": \"token\", \"git\": \"bot\"", "\"token\": \"keyring:t\"")),
                "only an App"));
}

TEST_CASE("E1 the API's address is https, and has no place for anything else") {
  for (auto good :
       {"https://api.github.com", "https://git.example.org/api/v3", "https://git.example.org:8443/api/v3/"}) {
    INFO(good);
    CHECK_FALSE(load(withConnection(app + ", \"api_url\": \"" + good + "\"", key)).hasErrors());
  }
  for (auto bad : {"http://api.github.com", "https://", "https://user@host", "https://host/../x", "https://host/?q",
                   "https://host:0", "https://host:", "ftp://x", "https://host name"}) {
    INFO(bad);
    CHECK(load(withConnection(app + ", \"api_url\": \"" + bad + "\"", key)).hasErrors());
  }
}

TEST_CASE("C9 with git as the bot, config check says which host and which operation is missing") {
  auto config = [](const std::string& allow, const std::string& binding, const std::string& scope) {
    return withConnection(
        app + ", \"git\": \"bot\"", key,
        ", \"scopes\": [{\"id\": \"s\", \"authorization\": {\"connections\": [\"g\"], \"operations\": [" + scope +
            "]}, \"bindings\": [{\"name\": \"b\", \"executor\": \"shell\", \"connection\": \"g\", \"operations\": [" +
            binding +
            "], \"config\": {\"command\": [\"true\"]}, \"resource\": {\"provider\": \"git\", \"config\": {\"checkout\": \"/srv/demo\"}}, "
            "\"sandbox\": {\"provider\": \"srt\", \"config\": {\"network\": {\"allow\": [" +
            allow + "]}}}}]}]");
  };
  const std::string credential = "\"github.git.credential\"", toolset = "\"@github.workspace\"";
  CHECK_FALSE(load(config("\"github.com\"", credential, toolset)).hasErrors());
  CHECK_FALSE(load(config("\"github.com:443\"", toolset, credential)).hasErrors());
  CHECK(reports(load(config("\"example.org\"", toolset, toolset)), "cannot reach github.com"));
  CHECK(reports(load(config("\"github.com:22\"", toolset, toolset)), "cannot reach github.com"));
  CHECK(reports(load(config("\"github.com\"", "", toolset)), "the binding does not list"));
  CHECK(reports(load(config("\"github.com\"", toolset, "\"@github.author\"")),
                "the scope's authorization does not list"));
}

TEST_CASE("E2 routes have conditions") {
  auto loaded = load(withConnection(app, key, R"(, "scopes": [{"id": "s", "authorization": {"connections": ["g"]},
    "extensions": [{"name": "e", "type": "github", "connection": "g", "config": {"repo": "o/r"}}],
    "routes": [{"name": "r", "handler": "github", "binding": "b", "config": {"labels": ["agent", "good first issue"], "assignees": ["me"]}}],
    "bindings": [{"name": "b", "executor": "shell", "config": {"command": ["true"]}, "resource": {"provider": "git", "config": {"checkout": "/srv/demo"}}}]}])"));
  INFO(rendered(loaded));
  REQUIRE(loaded.config.has_value());
  auto& route = loaded.config->scopes.at(0).routes.at(0);
  CHECK(route.labels == std::vector<std::string>{"agent", "good first issue"});
  CHECK(route.assignees == std::vector<std::string>{"me"});
}

}  // namespace
}  // namespace oc::config
