// The job of an instance: what it does with which secret, from its command line.
#pragma once

#include <string>
#include <vector>

namespace oc::keyring {

enum class Action { Get, Set, Remove, List };

struct Job {
  Action action = Action::List;
  std::string name;  // empty for List
};

// From "get NAME", "set NAME", "rm NAME" or "list". A name: letters, digits, '.', '_', '-', up to 64, beginning with a
// letter or a digit, as the config has it. Throws kit::UsageError.
Job parseJob(const std::vector<std::string>& words);
// What parseJob reads.
std::vector<std::string> jobWords(const Job& job);

}  // namespace oc::keyring
