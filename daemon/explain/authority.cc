// What a binding selects and its scope allows: both must.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "daemon/work/environment.h"
#include "daemon/work/secrets.h"
#include "parts.h"

namespace oc::explain {

namespace {

using Texts = std::vector<std::string>;

bool has(const Texts& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

const config::Scope& scopeOf(const Setting& setting) { return *setting.config.findScope(setting.binding.scope); }

void addOperations(const Setting& setting, Lines& lines) {
  auto& granted = scopeOf(setting).authorization.operations;
  for (auto& name : setting.binding.operations) {
    auto answer = mayCall(setting, name);
    lines.push_back({"call", answer.yes, name, answer.why});
  }
  if (setting.binding.operations.empty() && !granted.empty()) {
    lines.push_back({"call", false, "every operation", "the binding lists none"});
  }
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
    if (!has(setting.binding.secretNames, name)) lines.push_back({"secret", false, name, "the binding's secret_names does not select it"});
  }
}

}  // namespace

Answer mayCall(const Setting& setting, const std::string& operation) {
  bool binding = has(setting.binding.operations, operation);
  bool scope = has(scopeOf(setting).authorization.operations, operation);
  if (binding && scope) return {true, "the binding's operations and the scope's authorization both list it"};
  if (binding) return {false, "the scope's authorization.operations does not list it"};
  if (scope) return {false, "the binding's operations does not list it"};
  return {false, "neither the binding's operations nor the scope's authorization.operations lists it"};
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
