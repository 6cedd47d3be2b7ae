// What a command adds to the command line. Behind it is CLI11, whose header takes longer to compile than a command
// does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/world.h"

namespace CLI {
class App;
}

namespace oc::cli {

struct Choice {
  std::string configFile;  // --config; empty: the usual place
  bool json = false;
  std::function<int(World&)> act;  // the chosen command
};

// A command, or a group of them. Names are as CLI11 takes them: "id" is positional, "-n,--limit" an option. What a
// reference names is written when the words are understood, so it must outlive that. `type` is how help shows the
// value.
class Command {
 public:
  Command(CLI::App& app, Choice& choice) : app(app), choice(choice) {}

  Command group(const std::string& name, const std::string& what);
  // With --json; does `act` when it is the one that was chosen.
  Command command(const std::string& name, const std::string& what, std::function<int(World&)> act);
  // Without --json: it never comes back to print.
  Command commandWithoutJson(const std::string& name, const std::string& what, std::function<int(World&)> act);

  Command& required(const std::string& name, std::string& value, const std::string& what, const std::string& type);
  // One or more words, to the end of the line.
  Command& required(const std::string& name, std::vector<std::string>& values, const std::string& what,
                    const std::string& type);
  Command& option(const std::string& name, std::string& value, const std::string& what, const std::string& type);
  // `given` is true afterwards when the option was among the words.
  Command& option(const std::string& name, size_t& value, bool& given, const std::string& what,
                  const std::string& type);
  Command& flag(const std::string& name, bool& value, const std::string& what);

 private:
  CLI::App& app;
  Choice& choice;
};

}  // namespace oc::cli
