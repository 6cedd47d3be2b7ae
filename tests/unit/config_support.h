// How the config's tests say what they expect, and where.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "daemon/config/load.h"
#include "tests/catch.h"

namespace oc::config::testing {

// A text of tests/fixtures/config.
std::string fixture(const std::string& name);
// The top of the sources.
std::string sources();

Loaded load(std::string_view text);

std::string rendered(const Loaded& loaded);

// A config with one binding, of which `fields` are the fields besides its name.
std::string withBinding(const std::string& fields);
// The same with a shell job on a repository, and `fields` besides.
std::string withShell(const std::string& fields);
// … in srt with this policy, in Docker with this one besides the image. Fields only, without the braces.
std::string withSrt(const std::string& policy, const std::string& more = "");
std::string withDocker(const std::string& policy, const std::string& more = "");

// `marked` has a § before the place of an error. Checks that there is one, there, of that field, and that message and
// fix contain these words.
void checkError(const std::string& marked, std::string_view field, std::string_view message, std::string_view fix = "",
                std::string_view reason = "");
// Likewise, and that there is no error.
void checkWarning(const std::string& marked, std::string_view field, std::string_view message);
// Neither errors nor warnings.
void checkClean(const std::string& text);
// Only warnings, if anything.
void checkAccepted(const std::string& text);

namespace detail {

constexpr std::string_view mark = "§";

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

struct Expected {
  std::string text;
  size_t line = 1, column = 1;
};

inline Expected unmarked(const std::string& marked) {
  auto at = marked.find(mark);
  REQUIRE(at != std::string::npos);
  Expected expected{marked.substr(0, at) + marked.substr(at + mark.size())};
  for (size_t i = 0; i < at; ++i) {
    if (marked[i] == '\n') {
      ++expected.line;
      expected.column = 1;
    } else if ((static_cast<unsigned char>(marked[i]) & 0xC0) != 0x80) {
      ++expected.column;
    }
  }
  return expected;
}

// For the test that every diagnostic has a row (config_complete_test.cc).
inline void collect(std::string message) {
  auto path = getenv("OPEN_CONDUIT_COLLECT_DIAGNOSTICS");
  if (path == nullptr) return;
  std::replace(message.begin(), message.end(), '\n', ' ');
  auto fd = openFile(path, O_WRONLY | O_CREAT | O_APPEND);
  writeAll(fd.get(), message + "\n");
}

inline void checkDiagnostic(const std::string& marked, Diagnostic::Severity severity, std::string_view field,
                            std::string_view message, std::string_view fix, std::string_view reason) {
  auto expected = unmarked(marked);
  auto loaded = load(expected.text);
  INFO("expected: " << expected.line << ":" << expected.column << " " << field << ": " << message << " / " << fix);
  INFO(rendered(loaded));
  bool found = false;
  for (auto& diagnostic : loaded.diagnostics) {
    bool is = diagnostic.severity == severity && diagnostic.line == expected.line &&
              diagnostic.column == expected.column && diagnostic.field == field &&
              contains(diagnostic.message, message) && contains(diagnostic.fix, fix) && diagnostic.reason == reason;
    if (is) collect(diagnostic.message);
    found |= is;
  }
  CHECK(found);
  CHECK(loaded.config.has_value() == !loaded.hasErrors());
  CHECK((severity == Diagnostic::Severity::Error) == loaded.hasErrors());
}

}  // namespace detail

inline std::string sources() {
  if (auto given = getenv("OPEN_CONDUIT_SOURCE")) return given;
  std::string path = ".";
  while (access((path + "/tests/fixtures").c_str(), F_OK) != 0 && path.size() < 60) path += "/..";
  return path;
}

inline std::string fixture(const std::string& name) {
  return readFile(sources() + "/tests/fixtures/config/" + name, 1 << 20);
}

inline Loaded load(std::string_view text) {
  return loadText(
      text, "config.json",
      {"/home/op",
       "",
       {"/home/op/.config/open-conduit", "/home/op/.local/state/open-conduit", "/run/user/1000/open-conduit"}});
}

inline std::string rendered(const Loaded& loaded) {
  std::string result;
  for (auto& diagnostic : loaded.diagnostics) result += render(diagnostic, "config.json") + "\n";
  return result;
}

inline std::string withBinding(const std::string& fields) {
  return "{\"version\": 1, \"scopes\": [{\"id\": \"s\", \"secret_refs\": {\"key\": \"keyring:key\"}, \"bindings\": [\n{\"name\": \"b\", " +
         fields + "}]}]}";
}

inline std::string withShell(const std::string& fields) {
  return withBinding(
      "\"executor\": \"shell\", \"config\": {\"command\": [\"true\"]}, "
      "\"resource\": {\"provider\": \"git\", \"config\": {\"checkout\": \"/srv/demo\"}}" +
      (fields.empty() ? "" : ", " + fields));
}

inline std::string withSrt(const std::string& policy, const std::string& more) {
  return withShell("\"sandbox\": {\"provider\": \"srt\", \"config\": {" + policy + "}}" +
                   (more.empty() ? "" : ", " + more));
}

inline std::string withDocker(const std::string& policy, const std::string& more) {
  return withShell(
      "\"container\": {\"provider\": \"docker\", \"config\": {\"image\": \"agent@sha256:" + std::string(64, 'a') +
      "\"" + (policy.empty() ? "" : ", " + policy) + "}}" + (more.empty() ? "" : ", " + more));
}

inline void checkError(const std::string& marked, std::string_view field, std::string_view message,
                       std::string_view fix, std::string_view reason) {
  detail::checkDiagnostic(marked, Diagnostic::Severity::Error, field, message, fix, reason);
}

inline void checkWarning(const std::string& marked, std::string_view field, std::string_view message) {
  detail::checkDiagnostic(marked, Diagnostic::Severity::Warning, field, message, "", "");
}

inline void checkClean(const std::string& text) {
  auto loaded = load(text);
  INFO(rendered(loaded));
  CHECK(loaded.diagnostics.empty());
  CHECK(loaded.config);
}

inline void checkAccepted(const std::string& text) {
  auto loaded = load(text);
  INFO(rendered(loaded));
  CHECK_FALSE(loaded.hasErrors());
  CHECK(loaded.config);
}

}  // namespace oc::config::testing
