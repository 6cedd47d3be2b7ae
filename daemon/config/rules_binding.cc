#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "format_parts.h"
#include "rules.h"

namespace oc::config {

namespace {

// One system's argument list holds more (128 KiB per argument on Linux), but srt refuses command lines beyond 126 KiB.
constexpr size_t commandLimit = 100 << 10;
// Of all variables together: instances take messages of 1 MiB, in which there is more than these.
constexpr size_t environmentLimit = 512 << 10;

class BindingRules {
 public:
  explicit BindingRules(const BindingContext& context)
      : context(context), binding(context.binding), report(context.report) {}

  void check() {
    checkExecutor();
    checkRequires();
    checkResource();
    checkSecretEnv();
    checkEnvironment();
    checkTimes();
  }

 private:
  void checkExecutor() {
    auto command = binding.field("config", "command");
    if (command) {
      size_t total = 0;
      auto words = stringsOf(command);
      for (auto& word : words) total += word.node->text.size() + 1;
      if (!words.empty() && words[0].node->text.empty())
        report.error(words[0], "the program's name is empty", "write a program's name or path");
      if (total > commandLimit) {
        report.error(*command, fmt::format("the command is longer than {} KiB", commandLimit >> 10),
                     "put it in a script and run that");
      }
    }
    if (context.executor() != "shell") return;
    for (auto name : {"max_turns", "max_budget_usd"}) {
      auto field = binding.field(name);
      if (field)
        report.error(*field, "only the executor claude-code has turns and a budget",
                     "delete it; \"timeout\" bounds a command");
    }
  }

  void checkRequires() {
    auto requires_ = binding.field("requires");
    if (!requires_) return;
    for (auto name : {"inject", "resume"}) {
      auto field = requires_->field(name);
      if (context.executor() == "shell" && field && field->node->boolean) {
        report.error(*field, fmt::format("the executor shell can't {}", name), "write false, or delete it");
      }
    }
    auto workspace = requires_->field("workspace");
    if (workspace && workspace->node->boolean && !binding.field("resource")) {
      report.error(*workspace, "the binding has no resource to make a workspace of", "add \"resource\"");
    }
    auto toolbelt = requires_->field("toolbelt");
    auto srt = context.srt();
    if (!toolbelt || !srt || srt->text("unix_sockets") == "all") return;
    auto sockets = srt->texts("sockets");
    if (std::find(sockets.begin(), sockets.end(), "{toolbelt}") != sockets.end()) return;
    report.error(*toolbelt, "the sandbox doesn't let runs use their toolbelt's socket",
                 "add \"{toolbelt}\" to sandbox.config.sockets, and \"unix_sockets\": \"all\"");
  }

  void checkResource() {
    auto config = binding.field("config");
    if (!config) return;
    auto mode = config->field("workspace_mode");
    if (!binding.field("resource")) {
      for (auto name : {"workspace_mode", "branch"}) {
        if (auto field = config->field(name))
          report.error(*field, "the binding has no resource that this could apply to",
                       "add \"resource\", or delete this");
      }
      return;
    }
    auto resource = binding.field("resource", "config");
    auto resourceMode = resource ? resource->field("mode") : std::nullopt;
    if (!mode || !resourceMode || !mode->isString() || !resourceMode->isString()) return;
    if (mode->node->text == resourceMode->node->text) return;
    report.error(*mode,
                 fmt::format("{} here, but {} in resource.config.mode", inQuotes(mode->node->text),
                             inQuotes(resourceMode->node->text)),
                 "write the same in both places, or leave one out");
  }

  void checkSecretEnv() {
    auto map = binding.field("config", "secret_env");
    if (!map) return;
    auto selected = binding.texts("secret_names");
    std::map<std::string, std::string> users;
    for (auto& entry : map->members()) {
      if (std::find(selected.begin(), selected.end(), entry.key()) == selected.end()) {
        report.errorOfKey(entry,
                          fmt::format("the secret {} isn't among the binding's secret_names", inQuotes(entry.key())),
                          didYouMean(entry.key(), selected, "add it to \"secret_names\""));
      }
      if (!entry.isString()) continue;
      auto [user, isNew] = users.emplace(entry.node->text, entry.key());
      if (!isNew) {
        report.error(entry, fmt::format("the secret {} already goes into this variable", inQuotes(user->second)),
                     "use another variable");
      }
      if (binding.field("config", "env") && binding.field("config", "env")->field(entry.node->text)) {
        report.error(entry, "\"env\" sets this variable too", "delete one of the two");
      }
      checkVariable(entry, entry.node->text);
    }
  }

  void checkEnvironment() {
    auto env = binding.field("config", "env");
    if (!env) return;
    size_t total = 0;
    for (auto& entry : env->members()) {
      checkVariable(entry, entry.key());
      total += entry.key().size() + (entry.isString() ? entry.node->text.size() : 0);
    }
    if (total > environmentLimit) {
      report.error(*env, fmt::format("the variables are together longer than {} KiB", environmentLimit >> 10),
                   "put what is long into a file that runs can read");
    }
  }

  void checkVariable(const Spot& spot, const std::string& name) {
    if (name.starts_with("OPEN_CONDUIT_")) {
      report.error(spot, "variables that begin with OPEN_CONDUIT_ are set by Open Conduit", "use another name");
    }
    bool homes = name == "HOME" || name == "CLAUDE_CONFIG_DIR";
    if (homes && context.binding.field("container")) {
      report.error(spot, fmt::format("in a container, {} is the Work's own home", name),
                   "delete it; \"home_seed\" says what a home begins with");
    }
  }

  void checkTimes() {
    auto maxRuns = binding.field("max_runs");
    auto all = context.all.root.field("settings", "max_runs");
    if (maxRuns && all && maxRuns->node->kind == Node::Kind::Integer && all->node->kind == Node::Kind::Integer &&
        maxRuns->node->integer > all->node->integer) {
      report.warning(*maxRuns, fmt::format("settings.max_runs allows only {} at once", all->node->integer),
                     "raise that, or lower this");
    }
    auto seed = binding.field("config", "home_seed");
    if (seed && !binding.field("container")) {
      report.error(*seed, "only runs in a container have a home of their own", "delete it, or use \"container\"");
    }
  }

  const BindingContext& context;
  const Spot& binding;
  Report& report;
};

}  // namespace

void checkBinding(const BindingContext& context) { BindingRules(context).check(); }

}  // namespace oc::config
