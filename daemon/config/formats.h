// The forms that a string in the config can have. Each is checked, described for people and, as far as a regular
// expression can, given to editors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oc::config {

enum class Format {
  Text,          // anything but NUL
  Title,         // for people: no control characters
  Name,          // an id: letters, digits, '.', '_', '-'
  ContextName,   // a Docker context
  HostPath,      // "/…" or "~/…"
  AbsolutePath,  // "/…" only
  GrantPath,     // also "{workspace}…", "{run}…"
  SocketPath,    // also "{toolbelt}"
  Host,          // base/host_pattern.h
  Network,       // "10.1.0.0/16"
  EnvironmentName,
  SecretReference,  // "keyring:…", "file:/…", "env:…"
  Operation,        // "github.git.credential", "@github.author"
  Image,            // name@sha256:…
  Branch,           // a template of a branch's name
  Memory,           // "8g"
  Repository,       // "owner/name"
  AppId,
  ApiUrl,  // "https://HOST[:PORT][/PATH]"
};

struct FormatProblem {
  std::string message, fix;
};

// Nothing when `text` has the form.
std::optional<FormatProblem> checkFormat(Format format, std::string_view text);

// "8g" in bytes: of a text in the format `Memory`.
uint64_t memoryBytes(std::string_view text);

// Completes the sentence "A string: …".
std::string_view formatWords(Format format);
// As JSON Schema has it (ECMA 262), anchored; empty when there is none. Accepts everything that checkFormat accepts.
std::string_view formatPattern(Format format);

}  // namespace oc::config
