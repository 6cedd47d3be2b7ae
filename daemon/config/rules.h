// What the description can't say: how the parts of a config go together. Each rule looks at a tree that may be wrong
// everywhere else, reports what it finds, and passes over what others report.
#pragma once

#include <string>
#include <vector>

#include "load.h"
#include "report.h"

namespace oc::config {

// A directory of a claude that runs as the operator, and whose it is, in words.
struct ClaudePlace {
  std::string path, resolved, whose;
};

struct RuleContext {
  Spot root;
  const Environment& environment;
  Report& report;
  std::vector<ClaudePlace> claudePlaces;
};

struct BindingContext {
  const RuleContext& all;
  Spot scope, binding;
  Report& report;

  std::string executor() const { return binding.text("executor"); }
  // The policy itself, if there is one.
  std::optional<Spot> srt() const { return policy("sandbox", "srt"); }
  std::optional<Spot> docker() const { return policy("container", "docker"); }
  bool isSandboxed() const { return binding.field("sandbox") || binding.field("container"); }
  // The binding's connection; nothing when it names none, or one that isn't there.
  std::optional<Spot> connection() const;

 private:
  std::optional<Spot> policy(std::string_view field, std::string_view provider) const;
};

// The items of an array field of `parent`.
std::vector<Spot> itemsOf(const Spot& parent, std::string_view field);
// Every string in the array, with its place.
std::vector<Spot> stringsOf(const std::optional<Spot>& list);

// Ids and names that are there twice; names that mean nothing.
void checkNames(const RuleContext& context);
// Of GitHub: what a connection needs, by its own settings.
void checkConnections(const RuleContext& context);
// C9: what a binding whose git signs in as the bot needs.
void checkGitAsBot(const BindingContext& context);
// A binding by itself: executor, resource, requires, secrets, environment.
void checkBinding(const BindingContext& context);
// sandbox_conflict, sandbox_workspace, and what srt and Docker can't do.
void checkSandbox(const BindingContext& context);
// sandbox_config: the config directory of a Claude Code in a process sandbox.
void checkClaudeDirectory(const BindingContext& context);
std::vector<ClaudePlace> findClaudePlaces(const Spot& root, const Environment& environment);
// Legal, but probably not meant: warnings only.
void findDangers(const BindingContext& context);
// Legal, but it comes to nothing: warnings only.
void findUnused(const BindingContext& context);
void findUnusedOfScope(const Spot& scope, Report& report);

// A path of the config, absolute and in normal form; nothing for a placeholder or what is no path.
std::optional<std::string> hostPath(const std::string& entry, const Environment& environment);

}  // namespace oc::config
