// The job of an instance: its role and the paths that it may see, from its command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oc::git {

enum class Role { Check, Inspect, Clone, Worktree, Pack, Receive, Scan, Remove };

struct Job {
  Role role = Role::Check;
  std::string checkout;   // absolute and normal, or empty when the role has none
  std::string workspace;  // likewise
  // The largest pack that `receive` takes. 4 GiB: GitHub refuses pushes beyond 2 GiB, so work that is to be pushed
  // fits.
  uint64_t maxSize = 4ull << 30;
};

const char* roleName(Role role);

// From "ROLE --checkout P --workspace W --max-size N". Throws kit::UsageError: unknown words, a path that is missing,
// relative or has control characters in it, an option that the role does not have. Looks at no file.
Job parseJob(const std::vector<std::string>& words);
// What parseJob reads.
std::vector<std::string> jobWords(const Job& job);

// Where `pack` keeps the git directory that stands in for the workspace's own, see pack.cc.
std::string viewOf(const Job& job);

}  // namespace oc::git
