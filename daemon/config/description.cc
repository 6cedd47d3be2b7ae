#include "description.h"

#include <algorithm>

#include "description_parts.h"
#include "shapes.h"

namespace oc::config {

using namespace shapes;

namespace {

constexpr double hour = 3600;
constexpr double pow2(int bits) { return static_cast<double>(int64_t{1} << bits); }

ShapePtr providerSettings(const std::string& title, std::vector<Field> more) {
  std::vector<Field> fields = {
      optional("pass_env", list(text(Format::EnvironmentName), 0, 100),
               "Variables of the daemon's environment that the provider gets besides the few that it always has.",
               Json::array())};
  for (auto& field : more) fields.push_back(std::move(field));
  return object(title, "", std::move(fields));
}

ShapePtr extensionsShape() {
  std::vector<Field> fields;
  for (auto name : {"docker", "git", "github", "host", "keyring", "run"}) {
    fields.push_back(
        optional(name, providerSettings("Settings of a provider", {}), std::string("Of the ") + name + " provider."));
  }
  fields.push_back(
      optional("srt",
               providerSettings(
                   "Settings of the srt provider",
                   {optional("node", text(Format::AbsolutePath), "The `node` that runs srt; looked for if not given."),
                    optional("package_dir", text(Format::AbsolutePath),
                             "The folder of the package `@anthropic-ai/sandbox-runtime`; looked for if not given.")}),
               "Of the srt provider."));
  fields.push_back(optional(
      "claude",
      object(
          "Settings of Claude Code", "",
          {optional(
              "program", text(Format::AbsolutePath),
              "The program `claude` of runs without a container. Not given: the first in the daemon's PATH, in "
              "`~/.local/bin`, `/usr/local/bin` or `/usr/bin`. One that a policy lets an agent write is not started.")}),
      "Of Claude Code."));
  return object("Settings of providers", "Each provider is a program of its own with a minimal environment.",
                std::move(fields));
}

ShapePtr rootShape() {
  return object(
      "The file", "One JSON object.",
      {
          optional("$schema", text(Format::Text), "For editors; ignored."),
          required("version", integer(1, 1), "The version of this format: 1."),
          optional("settings", settingsShape(), "What concerns the daemon as a whole.", Json::object()),
          optional("connections", list(connectionShape()), "The services that bindings work with.", Json::array()),
          optional("scopes", list(scopeShape()), "Each scope is a set of bindings with what they may use.",
                   Json::array()),
      });
}

void collectPlaces(const Shape& shape, const std::string& path, std::string_view name, size_t limit,
                   std::vector<std::string>& places) {
  if (shape.item)
    collectPlaces(*shape.item, path + (shape.kind == Shape::Kind::List ? "[]" : ".*"), name, limit, places);
  for (auto& field : shape.fields) {
    std::string here = path.empty() ? field.name : path + "." + field.name;
    bool known = std::find(places.begin(), places.end(), here) != places.end();  // by another choice
    if (field.name == name && !known && places.size() < limit) places.push_back(here);
    if (field.choices.empty()) collectPlaces(*field.shape, here, name, limit, places);
    for (auto& [value, choice] : field.choices) collectPlaces(*choice, here, name, limit, places);
  }
}

}  // namespace

ShapePtr settingsShape() {
  return object(
      "Settings", "",
      {
          optional("max_runs", integer(1, 1000), "Runs at once, over all bindings; others wait.", 8),
          optional("log_max_bytes", integer(pow2(16), pow2(40)),
                   "What is kept of the output of one run, in bytes; the rest is counted and dropped.", 64 << 20),
          optional("grace", duration(0, hour), "How long a run has between being asked to stop and being killed.", 10),
          optional(
              "prepared_gateways", integer(0, 32),
              "Gateways that are made ahead of container runs, for each Docker Engine, so that a run starts sooner. Each is "
              "a container that waits, of some 4 MB besides what the Engine needs for it. The first ones are made after the "
              "first run.",
              1),
          optional(
              "prepared_containers", integer(0, 8),
              "How many bindings may have a container that was started ahead of their next Work, so that its run starts in "
              "a third of the time; those whose runs began last have one. Each waits with a gateway of its own. The first is "
              "made after the first run.",
              1),
          optional("extensions", extensionsShape(), "Settings of providers, by their names.", Json::object()),
      });
}

ShapePtr connectionShape() {
  auto github = object(
      "GitHub connection", "",
      {
          required(
              "auth", oneOf({"app", "token"}),
              "`app`: as a GitHub App, with tokens made for one repository at a time. `token`: with a personal access token."),
          optional("app_id", text(Format::AppId), "With `app`: the App's id."),
          optional("git", oneOf({"bot"}), "`bot`: commits carry the bot's name, and pushes use its token."),
          optional(
              "bot_app_id", text(Format::AppId),
              "The id of an App of the bot's own: it makes the tokens that git signs in with, whatever `git` says."),
          optional("api_url", text(Format::ApiUrl), "Where the API is: of a GitHub Enterprise, `https://HOST/api/v3`.",
                   "https://api.github.com"),
          optional("ca_file", text(Format::AbsolutePath),
                   "Certificates of the CAs that are trusted for this connection, instead of the system's."),
          optional(
              "poll_interval", duration(5, 24 * hour),
              "How often issues and comments are asked for. What has not changed costs GitHub and you next to nothing.",
              60),
          optional(
              "webhook_port", integer(1, 65535),
              "Listens for GitHub's webhooks on this port of 127.0.0.1, besides polling; whatever brings them there is yours. Needs the "
              "secret `webhook_secret`."),
      });
  return object("Connection", "A service, and how to sign in to it.",
                {
                    required("id", text(Format::Name), "What scopes and bindings call it. Unique."),
                    required("type", oneOf({"github"}), "What kind of service it is."),
                    chosen("config", "type", {{"github", github}}, "Depends on `type`."),
                    optional("secret_refs",
                             object("Secrets of a connection", "",
                                    {optional("app_private_key", text(Format::SecretReference),
                                              "With `auth: app`: the App's private key."),
                                     optional("token", text(Format::SecretReference), "With `auth: token`: the token."),
                                     optional("bot_private_key", text(Format::SecretReference),
                                              "With `bot_app_id`: that App's private key."),
                                     optional("webhook_secret", text(Format::SecretReference),
                                              "With `webhook_port`: what GitHub signs with. At least 16 bytes.")}),
                             "Where the secrets to sign in with are kept.", Json::object()),
                });
}

ShapePtr scopeShape() {
  auto names = list(text(Format::Name));
  auto authorization = object(
      "Authorization", "The most that any binding of the scope can be given.",
      {
          optional("connections", names, "Connections that the scope may use.", Json::array()),
          optional("operations", list(text(Format::Operation)),
                   "Operations that runs may call; a run gets those that its binding lists too.", Json::array()),
          optional("read_scopes", names, "Other scopes whose Work a run's reading operations may see.", Json::array()),
      });
  auto githubExtension =
      object("GitHub extension", "",
             {
                 optional("namespace", text(Format::Title), "What the Work's names begin with."),
                 optional("scope", text(Format::Name), "The scope that the Work belongs to: this one."),
                 required("repo", text(Format::Repository), "The repository whose issues become Work."),
             });
  auto extension = object("Extension", "Brings Work into the scope.",
                          {
                              required("name", text(Format::Name), "Unique within the scope."),
                              required("type", oneOf({"github"}), "What kind of source it is."),
                              optional("connection", text(Format::Name), "The connection that it uses."),
                              optional("secret_names", names, "Secrets of the scope that it gets.", Json::array()),
                              chosen("config", "type", {{"github", githubExtension}}, "Depends on `type`."),
                          });
  auto route = object(
      "Route", "Says which binding does the Work that comes in.",
      {
          required("name", text(Format::Name), "Unique within the scope."),
          required("handler", oneOf({"github"}), "The type of the extension that the Work comes from."),
          required("binding", text(Format::Name), "The binding of this scope that does it."),
          optional(
              "active_policy", oneOf({"inject", "queue", "ignore"}),
              "What an event does while the Work has a live run: goes into that run, waits for its end, or nothing.",
              "queue"),
          optional("config",
                   object("Config of a route", "",
                          {optional("labels", list(text(Format::Title), 0, 20), "The issue has all of these labels.",
                                    Json::array()),
                           optional("assignees", list(text(Format::Name), 0, 20),
                                    "The issue is assigned to one of these.", Json::array())}),
                   "Conditions. The first route that fits an issue has it.", Json::object()),
      });
  return object(
      "Scope", "",
      {
          required("id", text(Format::Name), "Unique. A binding is called by `SCOPE/BINDING`."),
          optional("name", text(Format::Title), "For people; the id, if not given."),
          optional("secret_refs", map(Format::Name, text(Format::SecretReference)),
                   "Secrets that bindings may select: name and where it is kept.", Json::object()),
          optional("authorization", authorization, "The most that any binding of the scope can be given.",
                   Json::object()),
          optional("extensions", list(extension), "Where Work comes from, besides `work new`.", Json::array()),
          optional("routes", list(route), "Which binding does what comes in.", Json::array()),
          optional("bindings", list(bindingShape()), "What is run, on what, and within which bounds.", Json::array()),
      });
}

const Field* Shape::find(std::string_view name) const {
  for (auto& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

const Shape& configShape() {
  static const ShapePtr shape = rootShape();
  return *shape;
}

std::vector<std::string> placesOfField(std::string_view name, size_t limit) {
  std::vector<std::string> places;
  collectPlaces(configShape(), "", name, limit, places);
  return places;
}

}  // namespace oc::config
