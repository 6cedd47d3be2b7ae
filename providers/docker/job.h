// An instance's job, from its words.
#pragma once

#include <string>
#include <vector>

namespace oc::docker {

enum class Kind { Task, Run };

struct Job {
  Kind kind = Kind::Task;
  unsigned connections = 0;  // to the Engine; of a run always the five that docker.capnp names
  std::string owner, run;    // of a task: empty, or all that it may touch
  std::string context;       // the Docker context's name, for messages alone
};

// The first descriptor of a connection to the Engine.
int firstConnection(const Job& job);

// Throws kit::UsageError.
Job parseJob(const std::vector<std::string>& words);
std::vector<std::string> jobWords(const Job& job);

}  // namespace oc::docker
