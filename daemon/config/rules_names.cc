#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "format_parts.h"
#include "rules.h"

namespace oc::config {

namespace {

std::vector<std::string> textsOf(const std::vector<Spot>& spots, std::string_view field) {
  std::vector<std::string> result;
  for (auto& spot : spots) {
    auto text = spot.text(field);
    if (!text.empty()) result.push_back(std::move(text));
  }
  return result;
}

std::vector<std::string> keysOf(const Spot& parent, std::string_view field) {
  std::vector<std::string> result;
  auto object = parent.field(field);
  if (!object) return result;
  for (auto& member : object->node->members) result.push_back(member.key);
  return result;
}

class Names {
 public:
  explicit Names(const RuleContext& context) : context(context), report(context.report) {}

  void check() {
    connections = textsOf(itemsOf(context.root, "connections"), "id");
    scopes = textsOf(itemsOf(context.root, "scopes"), "id");
    unique(itemsOf(context.root, "connections"), "id", "connection");
    unique(itemsOf(context.root, "scopes"), "id", "scope");
    for (auto& scope : itemsOf(context.root, "scopes")) checkScope(scope);
  }

 private:
  void unique(const std::vector<Spot>& spots, std::string_view field, std::string_view what) {
    std::map<std::string, size_t> lines;
    for (auto& spot : spots) {
      auto name = spot.field(field);
      if (!name || !name->isString()) continue;
      auto [known, isNew] = lines.emplace(name->node->text, name->node->at.line);
      if (isNew) continue;
      report.error(*name,
                   fmt::format("there is another {} {} in line {}", what, inQuotes(name->node->text), known->second),
                   "give one of the two another name");
    }
  }

  // `name` is the place that names one of `known`.
  void refers(const Spot& name, const std::vector<std::string>& known, std::string_view what, std::string otherwise) {
    if (!name.isString() || std::find(known.begin(), known.end(), name.node->text) != known.end()) return;
    report.error(name, fmt::format("there is no {} {}", what, inQuotes(name.node->text)),
                 didYouMean(name.node->text, known, std::move(otherwise)));
  }

  void checkScope(const Spot& scope) {
    unique(itemsOf(scope, "bindings"), "name", "binding");
    unique(itemsOf(scope, "routes"), "name", "route");
    unique(itemsOf(scope, "extensions"), "name", "extension");
    bindings = textsOf(itemsOf(scope, "bindings"), "name");
    secrets = keysOf(scope, "secret_refs");
    checkAuthorization(scope);
    for (auto& binding : itemsOf(scope, "bindings")) {
      checkConnection(scope, binding);
      checkSecrets(binding);
    }
    for (auto& extension : itemsOf(scope, "extensions")) checkExtension(scope, extension);
    for (auto& route : itemsOf(scope, "routes")) checkRoute(scope, route);
  }

  void checkAuthorization(const Spot& scope) {
    for (auto& name : stringsOf(scope.field("authorization", "connections"))) {
      refers(name, connections, "connection", "add it to \"connections\"");
    }
    for (auto& name : stringsOf(scope.field("authorization", "read_scopes"))) {
      refers(name, scopes, "scope", "name one of the scopes of this file");
    }
  }

  void checkConnection(const Spot& scope, const Spot& user) {
    auto name = user.field("connection");
    if (!name || !name->isString()) return;
    refers(*name, connections, "connection", "add it to \"connections\"");
    bool exists = std::find(connections.begin(), connections.end(), name->node->text) != connections.end();
    auto authorization = scope.field("authorization");
    auto allowed = authorization ? authorization->texts("connections") : std::vector<std::string>();
    if (!exists || std::find(allowed.begin(), allowed.end(), name->node->text) != allowed.end()) return;
    report.error(*name, fmt::format("the scope isn't authorized to use the connection {}", inQuotes(name->node->text)),
                 fmt::format("add it to {}.authorization.connections", scope.path()));
  }

  void checkSecrets(const Spot& user) {
    for (auto& name : stringsOf(user.field("secret_names"))) {
      refers(name, secrets, "secret", "define it in the scope's \"secret_refs\"");
    }
  }

  void checkExtension(const Spot& scope, const Spot& extension) {
    checkConnection(scope, extension);
    checkSecrets(extension);
    if (extension.text("type") == "github" && !extension.field("connection")) {
      report.error(extension, "a GitHub extension needs a connection to read issues with", "add \"connection\"");
    }
    auto named = extension.field("config", "scope");
    auto id = scope.text("id");
    if (!named || !named->isString() || id.empty() || named->node->text == id) return;
    report.error(*named, fmt::format("{} is not the scope that this extension is in", inQuotes(named->node->text)),
                 fmt::format("write \"{}\", or leave it out", id));
  }

  void checkRoute(const Spot& scope, const Spot& route) {
    if (auto binding = route.field("binding"))
      refers(*binding, bindings, "binding", "name one of this scope's bindings");
    auto handler = route.field("handler");
    auto types = textsOf(itemsOf(scope, "extensions"), "type");
    bool known = handler && handler->isString() && handler->node->text == "github";
    if (known && std::find(types.begin(), types.end(), "github") == types.end()) {
      report.error(*handler, "the scope has no extension of this type, so nothing comes in by this route",
                   "add one to the scope's \"extensions\"");
    }
    if (route.text("active_policy") != "inject") return;
    for (auto& binding : itemsOf(scope, "bindings")) {
      if (binding.text("name") != route.text("binding") || binding.text("executor") != "shell") continue;
      report.error(*route.field("active_policy"), "nothing can be put into a live run of the executor shell",
                   "write \"queue\" or \"ignore\"");
    }
  }

  const RuleContext& context;
  Report& report;
  std::vector<std::string> connections, scopes, bindings, secrets;
};

}  // namespace

std::vector<Spot> itemsOf(const Spot& parent, std::string_view field) {
  auto list = parent.field(field);
  return list ? list->items() : std::vector<Spot>();
}

std::vector<Spot> stringsOf(const std::optional<Spot>& list) {
  std::vector<Spot> result;
  if (!list) return result;
  for (auto& item : list->items()) {
    if (item.isString()) result.push_back(item);
  }
  return result;
}

std::optional<Spot> BindingContext::policy(std::string_view field, std::string_view provider) const {
  auto parent = binding.field(field);
  if (!parent || parent->text("provider") != provider) return std::nullopt;
  return parent->field("config");
}

std::optional<Spot> BindingContext::connection() const {
  auto wanted = binding.text("connection");
  for (auto& connection : itemsOf(all.root, "connections")) {
    if (!wanted.empty() && connection.text("id") == wanted) return connection;
  }
  return std::nullopt;
}

void checkNames(const RuleContext& context) { Names(context).check(); }

}  // namespace oc::config
