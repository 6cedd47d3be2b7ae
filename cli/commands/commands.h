// Each group of commands adds itself to the command line. What a command does, it does after all words are understood.
#pragma once

#include <memory>

#include "cli/command_line.h"
#include "cli/ui/documents.h"

namespace oc::cli {

void addDaemon(Command& all, Choice& choice);  // daemon, drain, reload
void addStatus(Command& all, Choice& choice);
void addDoctor(Command& all, Choice& choice);
void addConfig(Command& all, Choice& choice);
void addExplain(Command& config, Choice& choice);  // of the group config
void addSecret(Command& all, Choice& choice);
void addWork(Command& all, Choice& choice);
void addRuns(Command& all, Choice& choice);
void addUi(Command& all, Choice& choice);
// Until the person ends it. Throws Failure without a terminal or a daemon.
int runUi(World& world);
void addPlaybook(Command& all, Choice& choice);
void addPolicy(Command& all, Choice& choice);
// To the group `work`: say, exec; attach.
void addSay(Command& work, Choice& choice);
void addAttach(Command& work, Choice& choice);

void print(World& world, const Document& document);

}  // namespace oc::cli
