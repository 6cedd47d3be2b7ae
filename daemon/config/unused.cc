// What is legal and comes to nothing: names that lead nowhere, secrets that go nowhere, operations that nobody offers.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "format_parts.h"
#include "operations.h"
#include "rules.h"

namespace oc::config {

namespace {

using Texts = std::vector<std::string>;

bool has(const Texts& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

bool isCapitalVariable(const std::string& name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool isOfGitHub(const std::string& operation) {
  return operation.starts_with("github.") || operation.starts_with("@github.");
}

class Unused {
 public:
  explicit Unused(const BindingContext& context) : context(context), binding(context.binding), report(context.report) {}

  void find() {
    findUnknownOperations(binding.field("operations"), report);
    findOperationsWithoutConnection();
    findSecretsThatGoNowhere();
    findNumberWithoutIssue();
  }

  static void findUnknownOperations(const std::optional<Spot>& list, Report& report) {
    for (auto& entry : stringsOf(list)) {
      auto& name = entry.node->text;
      if (name.starts_with('@') || has(knownOperations(), name) || checkFormat(Format::Operation, name)) continue;
      report.warning(entry, fmt::format("this version has no operation {}", inQuotes(name)),
                     didYouMean(name, knownOperations(), "delete it"));
    }
  }

 private:
  void findOperationsWithoutConnection() {
    if (binding.field("connection")) return;
    for (auto& entry : stringsOf(binding.field("operations"))) {
      if (!isOfGitHub(entry.node->text)) continue;
      report.warning(entry, "the binding has no connection that this could use, so runs don't get it",
                     "add \"connection\"");
    }
  }

  void findSecretsThatGoNowhere() {
    auto map = binding.field("config", "secret_env");
    for (auto& entry : stringsOf(binding.field("secret_names"))) {
      auto& name = entry.node->text;
      if (isCapitalVariable(name) || (map && map->field(name))) continue;
      report.warning(
          entry, fmt::format("the secret {} goes into no variable, so runs don't see it", inQuotes(name)),
          fmt::format("add \"secret_env\": {{\"{}\": \"VARIABLE\"}} to \"config\"", shortened(printable(name), 64)));
    }
  }

  // Only what comes in from issues has a number. A binding with a connection is somebody's route to be.
  void findNumberWithoutIssue() {
    if (binding.field("connection")) return;
    auto branch = binding.field("config", "branch");
    if (!branch || !branch->isString() || branch->node->text.find("{number}") == std::string::npos) return;
    for (auto& route : itemsOf(context.scope, "routes")) {
      if (route.text("binding") == binding.text("name") && route.text("handler") == "github") return;
    }
    report.warning(*branch, "{number} is an issue's, and no route brings issues to this binding",
                   "write {work}, or add a route");
  }

  const BindingContext& context;
  const Spot& binding;
  Report& report;
};

}  // namespace

void findUnused(const BindingContext& context) { Unused(context).find(); }

void findUnusedOfScope(const Spot& scope, Report& report) {
  Unused::findUnknownOperations(scope.field("authorization", "operations"), report);
}

}  // namespace oc::config
