// The config file, looked at without a daemon.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/failure.h"
#include "cli/ui/documents.h"
#include "commands.h"
#include "daemon/config/description.h"
#include "daemon/config/load.h"

namespace oc::cli {

namespace {

Document diagnosticDocument(const config::Diagnostic& from) {
  return {{"line", from.line == 0 ? Document(nullptr) : Document(from.line)},
          {"column", from.column == 0 ? Document(nullptr) : Document(from.column)},
          {"severity", from.severity == config::Diagnostic::Severity::Error ? "error" : "warning"},
          {"field", textOrNull(from.field)},
          {"reason", textOrNull(from.reason)},
          {"message", from.message},
          {"fix", textOrNull(from.fix)}};
}

std::string summary(const config::Config& config) {
  size_t bindings = 0;
  for (auto& scope : config.scopes) bindings += scope.bindings.size();
  return fmt::format("{} scope{}, {} binding{}", config.scopes.size(), config.scopes.size() == 1 ? "" : "s", bindings,
                     bindings == 1 ? "" : "s");
}

int check(World& world, const std::string& file, bool json) {
  auto loaded = config::loadFile(file, config::environmentOf(world.places.home));
  if (json) {
    auto diagnostics = Document::array();
    for (auto& diagnostic : loaded.diagnostics) diagnostics.push_back(diagnosticDocument(diagnostic));
    print(world, {{"file", file}, {"ok", !loaded.hasErrors()}, {"diagnostics", diagnostics}});
  } else {
    for (auto& diagnostic : loaded.diagnostics) world.out(printable(config::render(diagnostic, file), true) + "\n");
    if (loaded.config) world.out(fmt::format("{}: ok, {}\n", printable(file), summary(*loaded.config)));
  }
  return loaded.hasErrors() ? No : Done;
}

}  // namespace

void addConfig(Command& all, Choice& choice) {
  auto config = all.group("config", "The config file");
  auto file = std::make_shared<std::string>();
  config
      .command("check", "Everything that is wrong with it",
               [&choice, file](World& world) {
                 auto& path = !file->empty() ? *file : choice.configFile;
                 return check(world, path.empty() ? world.places.config() : path, choice.json);
               })
      .option("file", *file, "Another file than the usual one", "FILE");
  config.command("schema", "Its JSON Schema, for editors", [](World& world) {
    world.out(config::configSchema().dump(2) + "\n");
    return Done;
  });
  addExplain(config, choice);
}

}  // namespace oc::cli
