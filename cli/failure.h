// How a command ends when it does not do what it was asked.
#pragma once

#include <string>

#include "base/refusal.h"

namespace oc::cli {

// A contract with scripts; see the manual page.
enum ExitCode {
  Done = 0,
  No = 1,  // the answer is no: refused, a check failed, the run failed
  WrongUsage = 2,
  NoDaemon = 3,  // none is there, or it went away
  // Of `work exec` alone, as shells have them: the command is there and cannot be run, or is not there.
  CommandNotRun = 126,
  CommandNotFound = 127,
};

// Thrown by commands, printed once by the program. `why.reason` is a word, for scripts.
struct Failure {
  ExitCode code;
  Refusal why;
};

inline Failure wrongUsage(std::string what, std::string fix = "") {
  return {WrongUsage, {"usage", std::move(what), std::move(fix)}};
}

}  // namespace oc::cli
