#include <fmt/format.h>

#include <algorithm>

#include "base/host_pattern.h"
#include "format_parts.h"
#include "rules.h"

namespace oc::config {

namespace {

void needsSecret(const RuleContext& context, const Spot& connection, const std::string& because,
                 const std::string& secret) {
  if (connection.field("secret_refs", secret)) return;
  context.report.error(connection, fmt::format("{} needs the secret \"{}\"", because, secret),
                       fmt::format("add \"secret_refs\": {{\"{}\": \"keyring:NAME\"}}", secret));
}

void checkConnection(const RuleContext& context, const Spot& connection) {
  auto config = connection.field("config");
  if (!config || connection.text("type") != "github") return;
  auto auth = config->text("auth");
  bool app = auth == "app";
  if (app && !config->field("app_id")) {
    context.report.error(*config, "\"auth\": \"app\" needs \"app_id\"",
                         "add \"app_id\": it is on the App's settings page");
  }
  if (app || auth == "token")
    needsSecret(context, connection, fmt::format("\"auth\": \"{}\"", auth), app ? "app_private_key" : "token");
  bool bot = config->field("bot_app_id").has_value();
  if (bot) needsSecret(context, connection, "\"bot_app_id\"", "bot_private_key");
  if (config->field("webhook_port")) needsSecret(context, connection, "\"webhook_port\"", "webhook_secret");
  if (auth == "token" && !bot && config->text("git") == "bot") {
    context.report.error(*config->field("git"),
                         "only an App's tokens can be made for one repository, and this connection has none",
                         "use \"auth\": \"app\", or give the bot an App by \"bot_app_id\"");
  }
}

// The host that git signs in to, of a connection whose API is at `api`.
std::string gitHostOf(const std::string& api) {
  if (api.empty() || api == "https://api.github.com") return "github.com";
  auto rest = api.substr(std::min(api.size(), std::string("https://").size()));
  return rest.substr(0, rest.find_first_of("/:"));
}

bool allows(const std::optional<Spot>& list, const std::string& host) {
  for (auto& entry : stringsOf(list)) {
    std::string why;
    auto pattern = parseHostPattern(entry.node->text, why);
    if (pattern && pattern->matches(host, 443)) return true;
  }
  return false;
}

bool lists(const std::vector<std::string>& operations) {
  auto has = [&operations](const char* name) {
    return std::find(operations.begin(), operations.end(), name) != operations.end();
  };
  return has("@github.workspace") || has("github.git.credential");
}

}  // namespace

void checkConnections(const RuleContext& context) {
  for (auto& connection : itemsOf(context.root, "connections")) checkConnection(context, connection);
}

// git signs in as the bot through the toolbelt: the host has to be reachable, and the operation allowed on both sides.
// Without, a run works all the same, and its git cannot push.
void checkGitAsBot(const BindingContext& context) {
  auto connection = context.connection();
  auto config = connection ? connection->field("config") : std::nullopt;
  if (!config || config->text("git") != "bot") return;
  auto host = gitHostOf(config->text("api_url"));
  for (auto& policy : {context.srt(), context.docker()}) {
    if (!policy || allows(policy->field("network", "allow"), host)) continue;
    auto list = policy->field("network", "allow");
    context.report.warning(list ? *list : *policy,
                           fmt::format("the connection has \"git\": \"bot\", and runs cannot reach {}", host),
                           fmt::format("add \"{}\" to network.allow", host));
  }
  auto authorization = context.scope.field("authorization");
  constexpr const char* fix = "add \"@github.workspace\"";
  if (!lists(context.binding.texts("operations"))) {
    context.report.warning(context.binding,
                           "the connection has \"git\": \"bot\", and the binding does not list github.git.credential",
                           fix);
  }
  if (!lists(authorization ? authorization->texts("operations") : std::vector<std::string>())) {
    context.report.warning(
        context.binding,
        "the connection has \"git\": \"bot\", and the scope's authorization does not list github.git.credential", fix);
  }
}

}  // namespace oc::config
