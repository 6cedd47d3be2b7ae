// What a run of a binding could do, by the rules that a run's policy is made of; without a daemon.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/environment.h"
#include "base/text.h"
#include "cli/failure.h"
#include "cli/ui/documents.h"
#include "commands.h"
#include "daemon/config/load.h"
#include "daemon/explain/explain.h"

namespace oc::cli {

namespace {

struct Questions {
  std::string binding, path, host, operation;
};

struct Asked {
  std::string question;  // "read", "write", "reach", "call"
  std::string what;
  explain::Answer answer;
};

config::Config loadConfig(World& world, const std::string& file, const std::string& binding) {
  auto loaded = config::loadFileFor(binding, file, config::environmentOf(world.places.home));
  if (loaded.config) return std::move(*loaded.config);
  throw Failure{No, {"config_invalid", fmt::format("{} has errors", file), "open-conduit config check"}};
}

const config::Binding& chosen(const config::Config& config, const std::string& id) {
  if (auto* binding = config.findBinding(id)) return *binding;
  std::vector<std::string> ids;
  for (auto& scope : config.scopes) {
    for (auto& binding : scope.bindings) ids.push_back(binding.id());
  }
  auto guess = closest(id, ids);
  throw Failure{No,
                {"binding_missing", fmt::format("the config has no binding {}", shortened(id, 128)),
                 !guess.empty() ? fmt::format("did you mean {}?", guess)
                 : ids.empty()  ? "it has none at all"
                                : fmt::format("write SCOPE/BINDING, {} for example", ids.front())}};
}

explain::Answer answered(OrRefusal<explain::Answer> answer) {
  if (answer.ok()) return answer.value();
  throw Failure{WrongUsage, answer.refusal()};
}

std::vector<Asked> ask(const explain::Explanation& explanation, const Questions& questions) {
  std::vector<Asked> asked;
  if (!questions.path.empty()) {
    asked.push_back({"read", questions.path, answered(explanation.mayRead(questions.path))});
    asked.push_back({"write", questions.path, answered(explanation.mayWrite(questions.path))});
  }
  if (!questions.host.empty())
    asked.push_back({"reach", questions.host, answered(explanation.mayReach(questions.host))});
  if (!questions.operation.empty())
    asked.push_back({"call", questions.operation, explanation.mayCall(questions.operation)});
  return asked;
}

// Of a path, whether it can be read: what can be written can be.
int codeOf(const std::vector<Asked>& asked) {
  for (auto& one : asked) {
    if (!one.answer.yes && one.question != "write") return No;
  }
  return Done;
}

std::string kindWords(const config::Binding& binding) {
  if (binding.srt) return "process sandbox (srt)";
  return binding.container ? "container (docker)" : "no sandbox: runs can do whatever you can";
}

// Many lines by one rule are counted; --json has them all.
constexpr size_t mostByOneRule = 6;

std::string sheet(const World& world, const config::Binding& binding, const explain::Explanation& explanation) {
  auto& look = world.look;
  std::string text = fmt::format("{}   {}   executor {}\n", tinted(look, Tint::Bold, line(binding.id())),
                                 kindWords(binding), binding.executor);
  std::string area;
  std::map<std::string, size_t> counts, shown;
  auto key = [](const explain::Line& line) { return line.area + (line.allowed ? "+" : "-") + line.rule; };
  for (auto& line : explanation.lines()) ++counts[key(line)];
  for (auto& one : explanation.lines()) {
    auto& already = shown[key(one)];
    bool many = counts[key(one)] > mostByOneRule;
    if (many && already == mostByOneRule - 1) {
      text += fmt::format("{}… and {} more: {}\n", std::string(16, ' '), counts[key(one)] - already, line(one.rule));
    }
    if (many && already++ >= mostByOneRule - 1) continue;
    auto label = one.area == area ? "" : one.area;
    area = one.area;
    auto word = one.allowed ? "   " : tinted(look, Tint::Bad, "no ");
    text += fmt::format("{}{} {}  {}\n", tinted(look, Tint::Dim, padded(label, 12)), word, padded(line(one.what), 44),
                        tinted(look, Tint::Dim, line(one.rule)));
  }
  for (auto& note : explanation.notes())
    text += fmt::format("{}{}\n", tinted(look, Tint::Caution, padded("note", 16)), paragraph(note, 16));
  return text;
}

Document linesDocument(const explain::Explanation& explanation) {
  auto lines = Document::array();
  for (auto& one : explanation.lines())
    lines.push_back({{"area", one.area}, {"allowed", one.allowed}, {"what", one.what}, {"rule", one.rule}});
  return lines;
}

Document answersDocument(const std::vector<Asked>& asked) {
  auto answers = Document::array();
  for (auto& one : asked)
    answers.push_back(
        {{"question", one.question}, {"what", one.what}, {"yes", one.answer.yes}, {"why", one.answer.why}});
  return answers;
}

int run(World& world, const Choice& choice, const Questions& questions) {
  auto config =
      loadConfig(world, choice.configFile.empty() ? world.places.config() : choice.configFile, questions.binding);
  auto& binding = chosen(config, questions.binding);
  auto environment = ownEnvironment();
  auto made = explain::explain({config, binding, world.places, environment});
  if (!made.ok()) throw Failure{No, made.refusal()};
  auto& explanation = *made.value();
  auto asked = ask(explanation, questions);
  if (choice.json) {
    Document document = {{"binding", binding.id()}, {"sandbox", binding.sandboxKind()}, {"executor", binding.executor}};
    if (asked.empty()) {
      document["lines"] = linesDocument(explanation);
      document["notes"] = explanation.notes();
    } else {
      document["answers"] = answersDocument(asked);
    }
    print(world, document);
    return codeOf(asked);
  }
  if (asked.empty()) world.out(sheet(world, binding, explanation));
  for (auto& one : asked) {
    auto word = one.answer.yes ? tinted(world.look, Tint::Good, "yes") : tinted(world.look, Tint::Bad, "no");
    world.out(fmt::format("{} {}: {}: {}\n", one.question, line(one.what), word, line(one.answer.why)));
  }
  return codeOf(asked);
}

}  // namespace

void addExplain(Command& config, Choice& choice) {
  auto questions = std::make_shared<Questions>();
  config
      .command("explain", "What a run of a binding could read, write, reach and call, and by which rule",
               [&choice, questions](World& world) { return run(world, choice, *questions); })
      .required("binding", questions->binding, "Which one", "SCOPE/BINDING")
      .option("--path", questions->path, "Only: can it read and write this?", "PATH")
      .option("--host", questions->host, "Only: can it reach this?", "HOST[:PORT]")
      .option("--operation", questions->operation, "Only: can it call this?", "OPERATION");
}

}  // namespace oc::cli
