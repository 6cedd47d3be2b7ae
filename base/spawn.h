// Starting a program with nothing of ours: no environment, no descriptors, no signal state but what is listed.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace oc {

struct SpawnSpec {
  std::string program;                 // an absolute path; argv[0] is its last name
  std::vector<std::string> arguments;  // after argv[0]
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::pair<int, int>> descriptors;  // (ours, theirs); 0, 1 and 2 are /dev/null unless listed
  std::string directory = "/";
  std::vector<std::string> controlGroups;  // folders of those that the program is to be in from its first instruction
  bool newSession = true;
  bool noNewPrivs = true;
  bool dieWithParent = false;  // SIGKILL when the spawning thread ends
};

struct Spawned {
  pid_t pid;
  kj::AutoCloseFd pidfd;
};

// fork and exec. All memory is laid out before the fork; between fork and exec only system calls are made,
// each of them checked; signals are at their defaults and none is blocked; every other descriptor is closed.
// Throws, naming the step and the program, when any of it fails: then nothing runs.
Spawned spawn(const SpawnSpec& spec);

// Opens a pidfd for a process that may be anyone's; throws.
kj::AutoCloseFd openPidfd(pid_t pid);
// Sends through the pidfd; false when the process is gone.
bool sendSignal(int pidfd, int signal);

}  // namespace oc
