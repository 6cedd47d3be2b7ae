#include "command_line.h"

#include <CLI/CLI.hpp>

namespace oc::cli {

namespace {

// More than any list has, and few enough digits for a message that names the range.
constexpr size_t mostCount = 1000000;

// Of program.cc's `shielded`.
std::string unshielded(std::string word) {
  if (word.ends_with('\0')) word.pop_back();
  return word;
}

}  // namespace

Command Command::group(const std::string& name, const std::string& what) {
  return Command(*app.add_subcommand(name, what), choice);
}

Command Command::commandWithoutJson(const std::string& name, const std::string& what, std::function<int(World&)> act) {
  auto* command = app.add_subcommand(name, what);
  command->callback([&choice = choice, act = std::move(act)]() { choice.act = act; });
  return Command(*command, choice);
}

Command Command::command(const std::string& name, const std::string& what, std::function<int(World&)> act) {
  auto command = commandWithoutJson(name, what, std::move(act));
  return command.flag("--json", choice.json, "Print one JSON document");
}

Command& Command::required(const std::string& name, std::string& value, const std::string& what,
                           const std::string& type) {
  app.add_option(name, value, what)->required()->type_name(type)->transform(unshielded, "");
  return *this;
}

Command& Command::required(const std::string& name, std::vector<std::string>& values, const std::string& what,
                           const std::string& type) {
  app.add_option(name, values, what)->required()->type_name(type)->transform(unshielded, "");
  return *this;
}

Command& Command::option(const std::string& name, std::string& value, const std::string& what,
                         const std::string& type) {
  app.add_option(name, value, what)->type_name(type);
  return *this;
}

Command& Command::option(const std::string& name, size_t& value, bool& given, const std::string& what,
                         const std::string& type) {
  app.add_option(name, value, what)
      ->check(CLI::Range(size_t{0}, mostCount).description(""))
      ->type_name(type)
      ->each([&given](const std::string&) { given = true; });
  return *this;
}

Command& Command::flag(const std::string& name, bool& value, const std::string& what) {
  app.add_flag(name, value, what);
  return *this;
}

}  // namespace oc::cli
