// What a compromised provider tries: each attack is one function that says whether it got through.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace oc::attack {

// What there is to attack. All of it lies outside of any provider's job.
struct Targets {
  pid_t daemon = 0;              // a process of the same user, with a secret in its environment and memory
  std::string secretFile;        // in a directory that the daemon hides from all instances
  std::string homeFile;          // the operator's, not hidden: rules about files have to keep it
  std::string socket;            // a path socket that listens, in a directory that isn't hidden
  std::string hiddenSocket;      // likewise, in one that is
  std::string abstractSocket;    // the name behind the leading NUL
  int tcpPort = 0, udpPort = 0;  // on 127.0.0.1
  int sharedMemory = 0;          // the id of a System V segment
};

std::vector<std::string> toWords(const Targets& targets);
Targets targetsFrom(const std::vector<std::string>& words);

struct Attack {
  const char* name;
  // 0: it got through. Otherwise errno, or -1 for what has none.
  int (*tryIt)(const Targets& targets);
};

const std::vector<Attack>& allAttacks();

}  // namespace oc::attack
