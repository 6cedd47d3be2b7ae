// From what a run was refused to a change of its binding, for a person to apply. Nothing is changed here.
#include <fmt/format.h>

#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/failure.h"
#include "cli/ui/documents.h"
#include "commands.h"
#include "daemon/config/document.h"
#include "daemon/explain/suggest.h"

namespace oc::cli {

namespace {

struct RefusedRun {
  std::string id, binding;
  std::vector<explain::Denied> denied;
};

RefusedRun fetch(World& world, const std::string& id) {
  auto link = world.connect();
  auto request = link.control.getRunRequest();
  request.setId(toText(id));
  auto answer = ask(world, request.send());
  requireDone(answer.getRefusal());
  auto run = answer.getRun();
  RefusedRun result = {toString(run.getId()), toString(run.getScope()) + "/" + toString(run.getBinding()), {}};
  for (auto denial : run.getDenied()) {
    result.denied.push_back({toString(denial.getKind()), toString(denial.getWhat()), toString(denial.getWhy())});
  }
  return result;
}

std::string readConfig(const std::string& file) {
  try {
    return readFile(file, config::documentSizeLimit);
  } catch (const kj::Exception& exception) {
    throw Failure{No, {"config_invalid", printable(exception.getDescription().cStr()), "open-conduit config check"}};
  }
}

Document documentOf(const RefusedRun& run, const std::string& file, const explain::Suggestion& suggestion) {
  auto opens = Document::array(), unchanged = Document::array();
  for (auto& one : suggestion.additions)
    opens.push_back({{"entry", one.entry}, {"opens", one.opens}, {"warnings", one.warnings}});
  for (auto& one : suggestion.unchanged) {
    unchanged.push_back({{"kind", one.denied.kind}, {"what", one.denied.what}, {"why", one.why}});
  }
  return {{"run", run.id},
          {"binding", run.binding},
          {"config", file},
          {"field", suggestion.field},
          {"patch", Document::parse(suggestion.patch.dump())},
          {"opens", opens},
          {"unchanged", unchanged}};
}

std::string sheet(const World& world, const RefusedRun& run, const std::string& file,
                  const explain::Suggestion& suggestion) {
  auto& look = world.look;
  if (run.denied.empty()) return fmt::format("{}: nothing that it was refused is known\n", line(run.id));
  std::string text;
  if (!suggestion.additions.empty()) {
    text += fmt::format("{}, to {}:\n", line(shortPath(look, file)), tinted(look, Tint::Bold, line(suggestion.field)));
    for (auto& one : suggestion.additions) {
      text += fmt::format("  {}\n      {}\n", tinted(look, Tint::Good, "+ " + line(Json(one.entry).dump())),
                          tinted(look, Tint::Dim, line(one.opens)));
      for (auto& warning : one.warnings)
        text += fmt::format("      {} {}\n", tinted(look, Tint::Caution, "warning:"), line(warning));
    }
    text += "as a JSON Patch:\n";
    for (auto& operation : suggestion.patch) text += fmt::format("  {}\n", line(operation.dump()));
  }
  if (!suggestion.unchanged.empty()) text += "nothing is suggested for:\n";
  for (auto& one : suggestion.unchanged) {
    text +=
        fmt::format("  {}{}  {}\n", padded(line(one.denied.kind), 8), padded(line(one.denied.what), 40), line(one.why));
  }
  if (suggestion.additions.empty()) return text;
  return text +
         "Nothing was changed. The agent chose these names: add those that you know, then open-conduit reload.\n";
}

int suggestFor(World& world, const Choice& choice, const std::string& id) {
  auto run = fetch(world, id);
  auto file = choice.configFile.empty() ? world.places.config() : choice.configFile;
  auto made = explain::suggest(readConfig(file), config::environmentOf(world.places.home), run.binding, run.denied);
  if (!made.ok()) throw Failure{No, made.refusal()};
  if (choice.json) {
    print(world, documentOf(run, file, made.value()));
  } else {
    world.out(sheet(world, run, file, made.value()));
  }
  return Done;
}

}  // namespace

void addPolicy(Command& all, Choice& choice) {
  auto policy = all.group("policy", "Policies: what would have to change in one");
  auto id = std::make_shared<std::string>();
  policy
      .command("suggest", "From what a run was refused, a change of its binding for you to apply",
               [&choice, id](World& world) { return suggestFor(world, choice, *id); })
      .required("id", *id, "The run's id, or a beginning that only one has", "RUN");
}

}  // namespace oc::cli
