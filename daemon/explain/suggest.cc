#include "suggest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace oc::explain {

namespace {

constexpr auto configName = "the config";

// Where the binding stands in the file.
struct Place {
  Json::json_pointer pointer;  // to its policy
  std::string field;
};

std::optional<Place> placeOf(const Json& root, const config::Binding& binding) {
  std::string kind = binding.container ? "container" : "sandbox";
  auto& scopes = root.at("scopes");
  for (size_t i = 0; i < scopes.size(); ++i) {
    if (scopes[i].at("id") != binding.scope) continue;
    auto& bindings = scopes[i].at("bindings");
    for (size_t j = 0; j < bindings.size(); ++j) {
      if (bindings[j].at("name") != binding.name) continue;
      return Place{Json::json_pointer(fmt::format("/scopes/{}/bindings/{}/{}/config", i, j, kind)),
                   fmt::format("scopes[{}].bindings[{}].{}.config.network.allow", i, j, kind)};
    }
  }
  return std::nullopt;
}

// What is not in the file yet is added with what it holds.
Json patchFor(const Json& root, const Place& place, const std::vector<std::string>& entries) {
  auto patch = Json::array();
  if (entries.empty()) return patch;
  auto add = [&patch](const Json::json_pointer& path, Json value) {
    patch.push_back({{"op", "add"}, {"path", path.to_string()}, {"value", std::move(value)}});
  };
  auto network = place.pointer / "network", allow = network / "allow";
  if (root.contains(allow)) {
    for (auto& entry : entries) add(allow / "-", entry);
  } else if (root.contains(network)) {
    add(allow, entries);
  } else if (root.contains(place.pointer)) {
    add(network, {{"allow", entries}});
  } else {
    add(place.pointer, {{"network", {{"allow", entries}}}});
  }
  return patch;
}

class Suggester {
 public:
  Suggester(const Json& root, const config::Environment& environment, const config::Binding& binding, Place place)
      : root(root), environment(environment), binding(binding), place(std::move(place)) {}

  Suggestion make(const std::vector<Denied>& denied) {
    result.field = place.field;
    for (auto& one : denied) consider(one);
    std::vector<std::string> entries;
    for (auto& addition : result.additions) entries.push_back(addition.entry);
    result.patch = patchFor(root, place, entries);
    return std::move(result);
  }

 private:
  const std::vector<HostPattern>& allowed() const {
    return binding.container ? binding.container->networkAllow : binding.srt->networkAllow;
  }

  void leave(const Denied& denied, std::string why) { result.unchanged.push_back({denied, std::move(why)}); }

  void consider(const Denied& denied) {
    if (denied.kind != "host") return leave(denied, "no entry of a policy is known that allows just this");
    if (denied.why == "private_address") {
      return leave(denied,
                   "the name leads to a private address: its range in network.private would allow that for every name");
    }
    if (denied.why != "not_allowed") return leave(denied, "an entry in network.allow would not change it");
    std::string why;
    auto host = parseHostPattern(denied.what, why);
    if (!host || host->subdomains || !host->port)
      return leave(denied, "it is no host and port that an entry could name");
    for (auto& entry : allowed()) {
      if (entry.matches(host->host, *host->port)) {
        return leave(denied, fmt::format("the config allows it by now: {}", entry.toString()));
      }
    }
    auto entry = host->toString();
    bool again = std::any_of(result.additions.begin(), result.additions.end(),
                             [&](auto& other) { return other.entry == entry; });
    if (!again) addChecked(denied, *host);
  }

  // config check is asked about the config with this entry alone, so that what it says is of this entry.
  void addChecked(const Denied& denied, const HostPattern& host) {
    bool dotted = host.host.find('.') != std::string::npos || host.host.find(':') != std::string::npos;
    if (binding.srt && !dotted && host.host != "localhost")
      return leave(denied, "srt cannot allow a name without a dot");
    auto entry = host.toString();
    auto checked = config::loadText(root.patch(patchFor(root, place, {entry})).dump(), configName, environment);
    Addition addition = {
        entry,
        fmt::format("every run of {} could connect to {} at port {}, and send there whatever it can read", binding.id(),
                    host.host, *host.port),
        {}};
    auto field = fmt::format("{}[{}]", place.field, allowed().size());
    for (auto& diagnostic : checked.diagnostics) {
      if (diagnostic.field != field) continue;
      if (diagnostic.severity == config::Diagnostic::Severity::Error) return leave(denied, diagnostic.message);
      addition.warnings.push_back(diagnostic.message);
    }
    if (!checked.config) return leave(denied, "the config would have errors");
    result.additions.push_back(std::move(addition));
  }

  const Json& root;
  const config::Environment& environment;
  const config::Binding& binding;
  Place place;
  Suggestion result;
};

}  // namespace

OrRefusal<Suggestion> suggest(const std::string& text, const config::Environment& environment, const std::string& id,
                              const std::vector<Denied>& denied) {
  auto loaded = config::loadText(text, configName, environment);
  if (!loaded.config) return Refusal{"config_invalid", "the config has errors", "open-conduit config check"};
  auto* binding = loaded.config->findBinding(id);
  if (binding == nullptr) {
    return Refusal{"binding_missing",
                   fmt::format("the config has no binding {} any more", printable(shortened(id, 128))), ""};
  }
  if (!binding->srt && !binding->container) {
    return Refusal{"binding_unsandboxed", fmt::format("{} has no sandbox by now, so it refuses nothing", id), ""};
  }
  auto root = parseJson(text);
  auto place = placeOf(root, *binding);
  if (!place) return Refusal{"binding_missing", fmt::format("{} was not found in the file", id), ""};
  return Suggester(root, environment, *binding, std::move(*place)).make(denied);
}

}  // namespace oc::explain
