// Each group of commands adds itself to the command line. What a command does, it does after all words are understood.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

#include "cli/ui/documents.h"
#include "cli/world.h"

namespace oc::cli {

struct Choice {
  std::string configFile;             // --config; empty: the usual place
  bool json = false;
  std::function<int(World&)> act;     // the chosen command
};

void addDaemon(CLI::App& app, Choice& choice);   // daemon, drain, reload
void addStatus(CLI::App& app, Choice& choice);
void addDoctor(CLI::App& app, Choice& choice);
void addConfig(CLI::App& app, Choice& choice);
void addWork(CLI::App& app, Choice& choice);
void addRuns(CLI::App& app, Choice& choice);

// A command of `parent` with --json that does `act`.
CLI::App* addCommand(CLI::App& parent, Choice& choice, const std::string& name, const std::string& what,
                     std::function<int(World&)> act);

void print(World& world, const Document& document);

}  // namespace oc::cli
