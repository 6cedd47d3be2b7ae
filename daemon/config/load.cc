#include "load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/text.h"
#include "base/places.h"
#include "build.h"
#include "check_shape.h"
#include "description.h"
#include "document.h"
#include "rules.h"

namespace oc::config {

namespace {

Loaded single(std::string message, std::string fix) {
  Loaded loaded;
  loaded.diagnostics.push_back({Diagnostic::Severity::Error, 0, 0, "", "", std::move(message), std::move(fix)});
  return loaded;
}

void reportDocument(const Document& document, Report& report) {
  for (auto& problem : document.problems) {
    auto severity = problem.warning ? Diagnostic::Severity::Warning : Diagnostic::Severity::Error;
    report.add({severity, problem.at.line, problem.at.column, problem.field, "", problem.message, problem.fix});
  }
}

void checkRules(const Spot& root, const Environment& environment, bool warns, Report& report) {
  RuleContext context{root, environment, report, findClaudePlaces(root, environment)};
  checkNames(context);
  checkConnections(context);
  for (auto& scope : itemsOf(root, "scopes")) {
    if (warns) findUnusedOfScope(scope, report);
    for (auto& binding : itemsOf(scope, "bindings")) {
      if (binding.node->kind != Node::Kind::Object) continue;
      BindingContext one{context, scope, binding, report};
      checkBinding(one);
      checkSandbox(one);
      checkClaudeDirectory(one);
      if (!warns) continue;
      checkGitAsBot(one);
      findDangers(one);
      findUnused(one);
    }
  }
}

// Whether it lets agents write in folders that are not each run's own: what lies there concerns other bindings, too.
bool isFeltElsewhere(const Node& binding) {
  for (auto kind : {"sandbox", "container"}) {
    auto sandbox = binding.find(kind);
    auto config = sandbox == nullptr ? nullptr : sandbox->value.find("config");
    auto write = config == nullptr ? nullptr : config->value.find("write");
    if (write == nullptr) continue;
    auto& entries = write->value.items;
    bool any = std::any_of(entries.begin(), entries.end(), [](auto& entry) { return !entry.text.starts_with('{'); });
    if (any) return true;
  }
  return false;
}

// Of a config without errors: leaves the one binding in it, if it is there, and those that are felt elsewhere.
void keepOnly(Node& root, const std::string& binding) {
  auto slash = binding.find('/');
  auto scopes = root.find("scopes");
  if (slash == binding.npos || scopes == nullptr) return;
  auto named = [](const Node& node, const char* field, std::string_view name) {
    auto member = node.find(field);
    return member != nullptr && member->value.text == name;
  };
  for (auto& scope : scopes->value.items) {
    auto bindings = scope.find("bindings");
    if (bindings == nullptr || !named(scope, "id", std::string_view(binding).substr(0, slash))) continue;
    auto& all = bindings->value.items;
    auto wanted = std::find_if(all.begin(), all.end(), [&](auto& node) {
      return named(node, "name", std::string_view(binding).substr(slash + 1));
    });
    if (wanted == all.end()) return;
    auto kept = &*wanted;
    for (auto& other : scopes->value.items) {
      auto member = other.find("bindings");
      if (member == nullptr) continue;
      std::vector<Node> left;
      for (auto& node : member->value.items) {
        if (&node == kept || isFeltElsewhere(node)) left.push_back(std::move(node));
      }
      member->value.items = std::move(left);
    }
    return;
  }
}

// `only` empty: every binding, and warnings.
Loaded load(std::string_view text, const std::string& name, const Environment& environment, const std::string& only) {
  Report report;
  auto document = readDocument(text);
  document.link();
  reportDocument(document, report);
  if (document.complete) {
    Spot root{&document.root};
    checkShape(root, configShape(), report);
    checkRules(root, environment, only.empty(), report);
  }
  Loaded loaded;
  loaded.diagnostics = report.take();
  if (loaded.hasErrors()) return loaded;
  if (!only.empty()) keepOnly(document.root, only);
  loaded.config = buildConfig(document.root, environment);
  loaded.config->path = name;
  return loaded;
}

}  // namespace

bool Loaded::hasErrors() const {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& diagnostic) { return diagnostic.severity == Diagnostic::Severity::Error; });
}

Environment environmentOf(const std::string& home) {
  auto claude = getenv("CLAUDE_CONFIG_DIR");
  auto places = findPlaces();
  return {
      home, claude == nullptr ? "" : claude, {places.configDir, places.stateDir, places.dataDir, places.runtimeDir}};
}

Loaded loadText(std::string_view text, const std::string& name, const Environment& environment) {
  return load(text, name, environment, "");
}

namespace {

// What the config says is run as the operator.
std::optional<Diagnostic> foreignHands(const struct stat& status) {
  Diagnostic found;
  found.severity = Diagnostic::Severity::Warning;
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    found.message =
        fmt::format("the file belongs to another user (uid {}), who can have anything run as you", status.st_uid);
    found.fix = "make a copy that is yours";
  } else if ((status.st_mode & S_IWOTH) != 0) {
    found.message = "all users of this machine can write the file, and so have anything run as you";
    found.fix = "chmod o-w it, and look at what it says";
  } else {
    return std::nullopt;
  }
  return found;
}

}  // namespace

Loaded loadFile(const std::string& path, const Environment& environment) { return loadFileFor("", path, environment); }

Loaded loadFileFor(const std::string& binding, const std::string& path, const Environment& environment) {
  // Not blocking: opening a FIFO would wait for a writer.
  int raw = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (raw < 0) {
    if (errno == ENOENT) return single("there is no such file", "write one, or name another with --config");
    return single(fmt::format("it can't be opened: {}", strerror(errno)), "make it readable for you");
  }
  kj::AutoCloseFd fd(raw);
  struct stat status;
  if (fstat(fd, &status) != 0) return single(fmt::format("it can't be looked at: {}", strerror(errno)), "");
  if (!S_ISREG(status.st_mode)) return single("it is not a file", "name the file itself");
  std::string text;
  try {
    text = readAll(fd, documentSizeLimit);
  } catch (const kj::Exception& exception) {
    if (status.st_size > static_cast<off_t>(documentSizeLimit)) {
      return single(fmt::format("the file is larger than {} MiB", documentSizeLimit >> 20),
                    "a config is far smaller; is this the right file?");
    }
    return single(fmt::format("it can't be read: {}", exception.getDescription().cStr()), "");
  }
  auto loaded = load(text, path, environment, binding);
  if (auto found = foreignHands(status); found && binding.empty())
    loaded.diagnostics.insert(loaded.diagnostics.begin(), std::move(*found));
  return loaded;
}

std::string render(const Diagnostic& diagnostic, const std::string& name) {
  bool isError = diagnostic.severity == Diagnostic::Severity::Error;
  std::string result = printable(name);
  if (diagnostic.line != 0) result += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
  result += isError ? ": error: " : ": warning: ";
  if (!diagnostic.field.empty()) result += printable(diagnostic.field) + ": ";
  result += printable(diagnostic.message);
  if (!diagnostic.reason.empty()) result += " (" + diagnostic.reason + ")";
  if (!diagnostic.fix.empty()) result += "\n  fix: " + printable(diagnostic.fix);
  return result;
}

}  // namespace oc::config
