// What open-conduit-srt was told to do: its job.
#pragma once

#include <string>
#include <vector>

namespace oc::srt {

// Every path is absolute. What srt starts it starts by these; PATH is fixed (see launch.h).
struct Job {
  std::string node, cli;
  std::string bwrap, socat, ripgrep, seccompHelper;  // for the check; a run's are in its settings
  std::string settings;                              // srt's settings file; empty: an instance that only checks
  std::vector<std::string> cgroups;  // that srt, and so the agent, is in; we are not, to end what meets a limit
  std::vector<std::string> sockets;  // that the policy lifts
  std::string scratch;               // see kit's Profile::scratch
};

// --node FILE --cli FILE [--bwrap FILE] [--socat FILE] [--ripgrep FILE] [--seccomp FILE] [--settings FILE] --scratch
// DIR [--cgroup DIR]… [--socket PATH]… Throws kit::UsageError.
Job parseJob(const std::vector<std::string>& words);
// The same without a word about what is missing or relative.
Job parsePartialJob(const std::vector<std::string>& words);
std::vector<std::string> toWords(const Job& job);

}  // namespace oc::srt
