// The description as a page for people.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <set>

#include "description.h"
#include "formats.h"
#include "operations.h"

namespace oc::config {

namespace {

using Kind = Shape::Kind;

constexpr const char* introduction = R"(# The config, field by field

This page is made from the description that `open-conduit config check` works by; `open-conduit config schema` prints the same as
JSON Schema for editors. What can't be said field by field, how the parts go together, is what `config check` says, with the place
in the file and how to mend it.

The file is JSON (RFC 8259, UTF-8, no comments), at most 4 MiB, by default at `~/.config/open-conduit/config.json`. A field
that isn't listed here is an error.

## An example

A repository whose issues go to Claude Code in a process sandbox when somebody labels them `agent`, and a command that is run on it by
hand: `open-conduit work new --binding shop/lint`. The directory `/home/you/agents/shop` is made by you, and is that Claude's alone.
Change the paths, the ids and the names; `open-conduit config check` says what is still missing.

```json
)";

constexpr const char* behindExample = R"(```

## Operations and toolsets

What `operations` can list. A toolset stands for all of its operations. A run gets what both its binding and its scope's authorization list.

| toolset | operations |
|---|---|
)";

constexpr const char* example = R"({
  "version": 1,
  "connections": [
    {"id": "github", "type": "github", "config": {"auth": "app", "app_id": "123456", "git": "bot"},
     "secret_refs": {"app_private_key": "keyring:github-app-key"}}
  ],
  "scopes": [
    {
      "id": "shop",
      "secret_refs": {"claude-token": "keyring:claude-token"},
      "authorization": {"connections": ["github"], "operations": ["@conduit.work", "@github.author", "@github.workspace"]},
      "extensions": [
        {"name": "shop", "type": "github", "connection": "github", "config": {"repo": "acme/shop"}}
      ],
      "routes": [
        {"name": "labelled", "handler": "github", "binding": "agent", "active_policy": "inject", "config": {"labels": ["agent"]}}
      ],
      "bindings": [
        {
          "name": "agent",
          "executor": "claude-code",
          "connection": "github",
          "requires": {"toolbelt": "mcp", "inject": true, "resume": true, "workspace": true},
          "operations": ["@github.author", "@github.workspace"],
          "secret_names": ["claude-token"],
          "config": {
            "playbook": "work-issue",
            "branch": "agent/issue-{number}",
            "env": {"CLAUDE_CONFIG_DIR": "/home/you/agents/shop"},
            "secret_env": {"claude-token": "CLAUDE_CODE_OAUTH_TOKEN"}
          },
          "resource": {"provider": "git", "config": {"checkout": "~/code/shop", "mode": "clone"}},
          "sandbox": {"provider": "srt", "config": {
            "write": ["{workspace}", "/home/you/agents/shop"],
            "network": {"allow": ["api.anthropic.com", "github.com"]},
            "sockets": ["{toolbelt}"],
            "unix_sockets": "all"
          }},
          "timeout": "2h",
          "stall_timeout": "20m"
        },
        {
          "name": "lint",
          "executor": "shell",
          "config": {"command": ["make", "lint"]},
          "resource": {"provider": "git", "config": {"checkout": "~/code/shop"}},
          "sandbox": {"provider": "srt", "config": {"write": ["{workspace}"], "network": {"allow": []}}}
        }
      ]
    }
  ]
}
)";

// As GitHub makes them.
std::string anchor(const std::string& title) {
  std::string result;
  for (unsigned char c : title) {
    if (c == ' ') result += '-';
    if (std::isalnum(c) || c == '-') result += static_cast<char>(std::tolower(c));
  }
  return result;
}

std::string link(const Shape& shape) { return fmt::format("[{}](#{})", shape.title, anchor(shape.title)); }

// "30m" for 1800.
std::string shownDuration(double seconds) {
  for (auto [unit, size] : {std::pair{'d', 86400.0}, {'h', 3600.0}, {'m', 60.0}}) {
    if (seconds >= size && std::fmod(seconds, size) == 0) return fmt::format("{}{}", int64_t(seconds / size), unit);
  }
  return fmt::format("{}s", int64_t(seconds));
}

std::string typeOf(const Shape& shape) {
  switch (shape.kind) {
    case Kind::String: return std::string(formatWords(shape.format));
    case Kind::OneOf: return fmt::format("`\"{}\"`", fmt::join(shape.values, "\"` or `\""));
    case Kind::Integer:
      if (shape.least == shape.most) return fmt::format("{}", int64_t(shape.least));
      return fmt::format("a whole number from {} to {}", int64_t(shape.least), int64_t(shape.most));
    case Kind::Number: return fmt::format("a number from {:.15g} to {:.15g}", shape.least, shape.most);
    case Kind::Boolean: return "`true` or `false`";
    case Kind::Duration:
      return fmt::format("a duration (`\"90s\"`, `\"30m\"`, `\"2h\"`, `\"1d\"`, or seconds), up to {}",
                         shownDuration(shape.most));
    case Kind::List: {
      std::string item = shape.item->kind == Kind::Object ? link(*shape.item) : typeOf(*shape.item);
      return (shape.least > 0 ? "a list, not empty, of: " : "a list of: ") + item;
    }
    case Kind::Map:
      return fmt::format("an object; keys: {}; values: {}", formatWords(shape.format), typeOf(*shape.item));
    case Kind::Object: return link(shape);
  }
  return "";
}

std::string typeOf(const Field& field) {
  if (field.choices.empty()) return typeOf(*field.shape);
  std::string result;
  for (auto& [value, choice] : field.choices) {
    result += fmt::format("{}`{}`: {}", result.empty() ? "" : "; ", value, link(*choice));
  }
  return result;
}

std::string defaultOf(const Field& field) {
  if (field.isRequired) return "required";
  bool empty = field.byDefault.is_null() || (field.byDefault.is_structured() && field.byDefault.empty());
  if (empty) return "";
  if (field.shape->kind == Kind::Duration) return fmt::format("`\"{}\"`", shownDuration(field.byDefault.get<double>()));
  return "`" + field.byDefault.dump() + "`";
}

std::string operationsOf(const std::string& toolset) {
  std::string result;
  for (auto& operation : knownOperations()) {
    if (toolsetOf(operation) == toolset) result += (result.empty() ? "`" : ", `") + operation + "`";
  }
  return result;
}

class ReferenceWriter {
 public:
  std::string write(const Shape& root) {
    page = introduction;
    page += example;
    page += behindExample;
    for (auto& toolset : knownToolsets()) page += fmt::format("| `{}` | {} |\n", toolset, operationsOf(toolset));
    writeObject(root);
    return page;
  }

 private:
  void writeObject(const Shape& shape) {
    if (!written.insert(shape.title).second) return;
    page += fmt::format("\n## {}\n", shape.title);
    if (!shape.doc.empty()) page += fmt::format("\n{}\n", shape.doc);
    if (!shape.fields.empty()) {
      page += "\n| field | what it is | default | |\n|---|---|---|---|\n";
      for (auto& field : shape.fields) {
        page += fmt::format("| `{}` | {} | {} | {} |\n", field.name, typeOf(field), defaultOf(field), field.doc);
      }
    }
    for (auto& field : shape.fields) {
      writeObjectsIn(*field.shape);
      for (auto& [value, choice] : field.choices) writeObject(*choice);
    }
  }

  void writeObjectsIn(const Shape& shape) {
    if (shape.item) writeObjectsIn(*shape.item);
    if (shape.kind == Kind::Object && !shape.title.empty()) writeObject(shape);
  }

  std::string page;
  std::set<std::string> written;
};

}  // namespace

std::string configExample() { return example; }

std::string configReference() { return ReferenceWriter().write(configShape()); }

}  // namespace oc::config
