// What a sandboxed run writes into a claude's config directory, hooks for example, runs as the operator when that
// claude is theirs.
#include <fmt/format.h>
#include <kj/exception.h>

#include "base/paths.h"
#include "rules.h"

namespace oc::config {

namespace {

// With links resolved, as far as that can be done.
std::string resolved(const std::string& path) {
  try {
    return resolvePath(path);
  } catch (const kj::Exception&) {
    return path;  // unreadable or a loop: the run's own check will say so
  }
}

bool overlap(const std::string& a, const std::string& b) { return isAtOrUnder(a, b) || isAtOrUnder(b, a); }

class ClaudeDirectory {
 public:
  explicit ClaudeDirectory(const BindingContext& context) : context(context), report(context.report) {}

  void check() {
    auto value = context.binding.field("config", "env")
                     ? context.binding.field("config", "env")->field("CLAUDE_CONFIG_DIR")
                     : std::nullopt;
    if (!value) return missing();
    if (!value->isString()) return;
    auto& text = value->node->text;
    if (text.empty() || text[0] != '/') {
      auto expanded = hostPath(text, context.all.environment);
      return refuse(*value, "CLAUDE_CONFIG_DIR must be an absolute path",
                    expanded ? "write " + *expanded : "write a path that begins with /");
    }
    auto directory = normalizePath(text);
    auto itself = resolved(directory);
    for (auto& other : context.all.claudePlaces) {
      bool clash = overlap(directory, other.path) || overlap(itself, other.resolved);
      if (!clash) continue;
      refuse(
          *value,
          fmt::format("what a run writes there would run as you in another claude: {} is {}", other.path, other.whose),
          "use a directory that no other claude uses, contains or lies in");
      return;
    }
    warnUngranted(*value, directory);
  }

 private:
  void refuse(const Spot& spot, std::string message, std::string fix) {
    report.error(spot, std::move(message), std::move(fix), "sandbox_config");
  }

  void missing() {
    auto config = context.binding.field("config");
    auto env = context.binding.field("config", "env");
    refuse(env      ? *env
           : config ? *config
                    : context.binding,
           "Claude Code in a process sandbox needs a config directory of its own",
           "add \"env\": {\"CLAUDE_CONFIG_DIR\": \"/…\"}, create that directory, and list it in sandbox.config.write");
  }

  void warnUngranted(const Spot& value, const std::string& directory) {
    for (auto& entry : stringsOf(context.srt()->field("write"))) {
      auto path = hostPath(entry.node->text, context.all.environment);
      if (path && isAtOrUnder(directory, *path)) return;
    }
    report.warning(value, "runs can't write to this directory, and so they will be refused",
                   "list it in sandbox.config.write");
  }

  const BindingContext& context;
  Report& report;
};

}  // namespace

std::vector<ClaudePlace> findClaudePlaces(const Spot& root, const Environment& environment) {
  std::vector<ClaudePlace> places;
  auto add = [&places](const std::string& path, std::string whose) {
    if (path.empty() || path[0] != '/') return;
    auto normal = normalizePath(path);
    places.push_back({normal, resolved(normal), std::move(whose)});
  };
  if (!environment.home.empty()) {
    add(environment.home + "/.claude", "your own claude's");
    add(environment.home + "/.claude.json", "your own claude's");
  }
  add(environment.claudeConfigDir, "your $CLAUDE_CONFIG_DIR");
  for (auto& scope : itemsOf(root, "scopes")) {
    for (auto& binding : itemsOf(scope, "bindings")) {
      auto env = binding.field("config", "env");
      if (!env || binding.field("sandbox") || binding.field("container")) continue;
      add(env->text("CLAUDE_CONFIG_DIR"),
          fmt::format("that of the unsandboxed binding {}/{}", scope.text("id"), binding.text("name")));
    }
  }
  return places;
}

void checkClaudeDirectory(const BindingContext& context) {
  if (context.executor() == "claude-code" && context.srt()) ClaudeDirectory(context).check();
}

}  // namespace oc::config
