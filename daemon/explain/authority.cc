// What a binding selects and its scope allows: both must.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "daemon/github/owner.h"
#include "daemon/toolbelt/operations.h"
#include "daemon/work/environment.h"
#include "daemon/work/secrets.h"
#include "parts.h"

namespace oc::explain {

namespace {

using Texts = std::vector<std::string>;

bool has(const Texts& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

const config::Scope& scopeOf(const Setting& setting) { return *setting.config.findScope(setting.binding.scope); }

// As the daemon's own.
toolbelt::Catalogue wholeCatalogue() {
  toolbelt::Catalogue catalogue;
  hub::addOperations(catalogue);
  return catalogue;
}

toolbelt::Grant grantOf(const Setting& setting) {
  return {setting.binding.operations, scopeOf(setting).authorization.operations};
}

// Operations by name. A toolset of which this process knows no operation is shown as it is: its provider's part of the
// daemon brings them.
void addOperations(const Setting& setting, Lines& lines) {
  auto catalogue = wholeCatalogue();
  auto add = [&](const std::string& name) {
    auto answer = mayCall(setting, name);
    lines.push_back({"call", answer.yes, name, answer.why});
  };
  for (auto& name : catalogue.expanded(setting.binding.operations)) add(name);
  for (auto& name : setting.binding.operations) {
    if (name.starts_with('@') && catalogue.expanded({name}).empty()) add(name);
  }
  if (setting.binding.operations.empty()) lines.push_back({"call", false, "every operation", "the binding lists none"});
}

// The names only: values are for runs.
void addEnvironment(const Setting& setting, const std::vector<work::SelectedSecret>& secrets, Lines& lines) {
  work::EnvironmentRequest request{setting.binding, setting.places, "", "", "", "", "", {}};
  auto environment = work::makeEnvironment(request, setting.environ);
  for (auto& [name, value] : environment) {
    bool own = setting.binding.env.contains(name);
    lines.push_back({"environment", true, name, own ? "config.env" : "always"});
  }
  for (auto& secret : secrets) {
    lines.push_back({"secret", true, fmt::format("{} in {}", secret.name, secret.variable),
                     fmt::format("secret_names and the scope's secret_refs: {}", secret.reference)});
  }
  for (auto& [name, reference] : scopeOf(setting).secretRefs) {
    if (!has(setting.binding.secretNames, name))
      lines.push_back({"secret", false, name, "the binding's secret_names does not select it"});
  }
}

}  // namespace

Answer mayCall(const Setting& setting, const std::string& operation) {
  auto refusal = toolbelt::whyNot(wholeCatalogue(), grantOf(setting), operation);
  // Its provider's part of the daemon knows it; here, who lists it counts.
  bool listed = refusal.reason.empty() || refusal.reason == "operation_unknown";
  if (listed) return {true, "the binding's operations and the scope's authorization both have it"};
  bool toolset = operation.starts_with('@') && has(setting.binding.operations, operation) &&
                 has(scopeOf(setting).authorization.operations, operation);
  if (toolset) return {true, "the binding's operations and the scope's authorization both list it"};
  return {false, refusal.what};
}

OrRefusal<Lines> explainAuthority(const Setting& setting) {
  auto secrets = work::selectSecrets(scopeOf(setting), setting.binding);
  if (!secrets.ok()) return secrets.refusal();
  Lines lines;
  addOperations(setting, lines);
  addEnvironment(setting, secrets.value(), lines);
  return lines;
}

}  // namespace oc::explain
