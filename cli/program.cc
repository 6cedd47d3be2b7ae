#include "program.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/reasons.h"
#include "base/text.h"
#include "client.h"
#include "commands/commands.h"
#include "failure.h"

namespace oc::cli {

namespace {

constexpr const char* about =
    "Turns work into runs of an agent, each inside the sandbox that its binding asks for.\n"
    "\n"
    "Commands that print facts take --json. Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 no daemon.\n";

void describeProgram(CLI::App& app, Choice& choice) {
  app.name("open-conduit");
  app.description(about);
  app.set_version_flag("--version", "open-conduit " OPEN_CONDUIT_VERSION);
  app.set_help_flag("-h,--help", "Say what there is");
  app.add_option("--config", choice.configFile, "The config, if not the usual one (daemon, doctor, config, secret)")
      ->type_name("FILE");
  app.fallthrough();
  Command all(app, choice);
  for (auto add :
       {addDaemon, addStatus, addDoctor, addConfig, addSecret, addWork, addRuns, addPolicy, addUi, addPlaybook}) {
    add(all, choice);
  }
}

std::vector<CLI::App*> commandsOf(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// CLI11 says of a misspelt command only that one is required.
void requireKnownCommand(CLI::App& app, const std::vector<std::string>& words) {
  auto* at = &app;
  std::string path;
  for (size_t i = 0; i < words.size() && !commandsOf(*at).empty(); ++i) {
    if (words[i] == "--config") ++i;  // with its value
    if (i >= words.size() || words[i].starts_with("-") || (i > 0 && words[i - 1] == "--config")) continue;
    std::vector<std::string> names;
    CLI::App* next = nullptr;
    for (auto* command : commandsOf(*at)) {
      names.push_back(command->get_name());
      if (command->get_name() == words[i]) next = command;
    }
    if (next == nullptr) {
      auto guess = closest(words[i], names);
      auto help = "open-conduit" + path + " --help";
      throw wrongUsage(fmt::format("there is no command{} {}", path, shortened(printable(words[i]), 64)),
                       guess.empty() ? help : fmt::format("did you mean {}? See {}", guess, help));
    }
    at = next;
    path += " " + words[i];
  }
}

// CLI11 takes a word in brackets for a list where there may be several words. Behind -- each word is one; a NUL, which
// no command line has, keeps it apart until it is in its place (`Command::required`).
std::vector<std::string> shielded(std::vector<std::string> words) {
  for (auto word = std::find(words.begin(), words.end(), "--"); word != words.end(); ++word) {
    if (word->starts_with('[') && word->ends_with(']')) *word += '\0';
  }
  return words;
}

std::string helpCommandOf(CLI::App& app) {
  std::string command = "open-conduit";
  for (auto* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  return command + " --help";
}

// The exit code of --help and --version; nothing when there is a command to do.
std::optional<int> parse(CLI::App& app, const std::vector<std::string>& words, World& world) {
  try {
    requireKnownCommand(app, words);
    auto reversed = shielded(words);
    std::reverse(reversed.begin(), reversed.end());
    app.parse(reversed);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw wrongUsage(printable(error.what()), helpCommandOf(app));
    std::ostringstream out, err;
    app.exit(error, out, err);
    world.out(out.str());
    return Done;
  }
}

void report(World& world, const Refusal& why, bool json) {
  if (json) {
    world.err(render(errorDocument(why), true));
    return;
  }
  // "usage" and "failed" are words for scripts and tell a person nothing.
  bool tells = why.reason != "usage" && why.reason != "failed" && why.reason != "no_daemon";
  world.err(fmt::format("open-conduit: {}{}\n", tells ? line(why.reason) + ": " : "", paragraph(why.what, 2)));
  auto fix = fixFor(why.reason, why.fix);
  if (!fix.empty()) world.err(fmt::format("  fix: {}\n", paragraph(fix, 7)));
}

// On a terminal with a daemon running the UI, else what there is to say.
int withoutWords(CLI::App& app, World& world) {
  if (world.look.terminal && isatty(STDIN_FILENO) == 1) {
    try {
      return runUi(world);
    } catch (const Failure& failure) {
      if (failure.code != NoDaemon) throw;
    }
  }
  world.out(app.help());
  return Done;
}

int act(const std::vector<std::string>& words, Choice& choice, World& world) {
  CLI::App app;
  describeProgram(app, choice);
  if (words.empty()) return withoutWords(app, world);
  if (auto code = parse(app, words, world)) return *code;
  if (!choice.act) {
    throw wrongUsage("a command is missing", helpCommandOf(app));
  }
  return choice.act(world);
}

}  // namespace

void print(World& world, const Document& document) { world.out(render(document, world.look.terminal)); }

int runProgram(const std::vector<std::string>& words, World& world) {
  Choice choice;
  // Known before the words are understood, so that not understanding them is told as JSON, too.
  bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    return act(words, choice, world);
  } catch (const Failure& failure) {
    report(world, failure.why, json);
    return failure.code;
  } catch (const kj::Exception& exception) {
    report(world, {"failed", describe(exception), ""}, json);
  } catch (const std::exception& exception) {
    report(world, {"failed", printable(exception.what()), ""}, json);
  }
  return No;
}

}  // namespace oc::cli
