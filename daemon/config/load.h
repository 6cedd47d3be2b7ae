// From a file to a Config, with every problem found on the way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model.h"

namespace oc::config {

struct Diagnostic {
  enum class Severity { Error, Warning } severity = Severity::Error;
  size_t line = 0, column = 0;  // from 1; 0: of the file as a whole
  std::string field;            // "scopes[0].bindings[0].sandbox.config.write[1]"; empty: of the file as a whole
  std::string reason;           // sandbox_conflict, sandbox_workspace, sandbox_config; else empty
  std::string message;          // what is wrong
  std::string fix;              // may be empty
};

struct Loaded {
  std::optional<Config> config;         // only without errors
  std::vector<Diagnostic> diagnostics;  // by position
  bool hasErrors() const;
};

// What checking needs to know of the operator.
struct Environment {
  std::string home;
  std::string claudeConfigDir = {};   // their own $CLAUDE_CONFIG_DIR, if set
  std::vector<std::string> own = {};  // Open Conduit's directories
};

// Of whom this process runs as; `home` is theirs.
Environment environmentOf(const std::string& home);

// Reads at most 4 MiB. A file that is not there, not a file, or not readable is one diagnostic.
Loaded loadFile(const std::string& path, const Environment& environment);
// The same for whoever wants to know of one binding: all of the file is checked, but nothing is warned of, and of the
// other bindings the config has those alone that let agents write in folders that are not each run's own. One that is
// not there: they are all in it.
Loaded loadFileFor(const std::string& binding, const std::string& path, const Environment& environment);
// `name` is what diagnostics call the text.
Loaded loadText(std::string_view text, const std::string& name, const Environment& environment);

// "config.json:41:18: error: scopes[0]…: message" and, where known, a second line "  fix: …".
std::string render(const Diagnostic& diagnostic, const std::string& name);

}  // namespace oc::config
