// The command line: from words to a command, and from its end to an exit code.
#pragma once

#include <string>
#include <vector>

#include "world.h"

namespace oc::cli {

// What a shell expects of a program that Ctrl-C ended.
constexpr int interruptedCode = 130;

// `words` are those behind the program's name. Prints what there is to print and returns the exit code.
int runProgram(const std::vector<std::string>& words, World& world);

}  // namespace oc::cli
