// Playbooks: what briefs an agent. They are read here, without a daemon.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/failure.h"
#include "cli/ui/documents.h"
#include "cli/ui/table.h"
#include "commands.h"
#include "daemon/config/playbook.h"

namespace oc::cli {

namespace {

int list(World& world, bool json) {
  auto all = config::allPlaybooks(world.places);
  if (json) {
    auto documents = Document::array();
    for (auto& one : all) {
      documents.push_back({{"name", one.name}, {"file", textOrNull(one.file)}, {"problem", textOrNull(one.problem)}});
    }
    print(world, documents);
    return Done;
  }
  Table table({"NAME", "FROM"});
  for (auto& one : all) table.add({one.name, one.file.empty() ? "built in" : shortPath(world.look, one.file)});
  world.out(table.render(world.look));
  for (auto& one : all) {
    if (!one.problem.empty()) world.out("cannot be used: " + one.problem + "\n");
  }
  return Done;
}

int show(World& world, const std::string& name, bool json) {
  auto found = config::findPlaybook(world.places, name);
  if (!found) throw Failure{No, found.refusal()};
  auto& playbook = found.value();
  if (json) {
    print(world, {{"name", playbook.name}, {"file", textOrNull(playbook.file)}, {"text", playbook.text}});
  } else {
    world.out(world.look.terminal ? printable(playbook.text, true) : playbook.text);
  }
  return Done;
}

}  // namespace

void addPlaybook(Command& all, Choice& choice) {
  auto playbook = all.group("playbook", "Playbooks: what an agent is told about its work");
  auto name = std::make_shared<std::string>();
  playbook.command("list", "The built-in one, and yours of the folder playbooks beside the config",
                   [&choice](World& world) { return list(world, choice.json); });
  playbook
      .command("show", "Its text, with the variables as they are",
               [&choice, name](World& world) { return show(world, *name, choice.json); })
      .required("name", *name, "Which one", "NAME");
}

}  // namespace oc::cli
