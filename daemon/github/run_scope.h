// What a run may do at GitHub: its one repository, issue and branch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/refusal.h"

namespace oc::hub {

// What a run's operations are for, by the pinned plan and the Work.
struct RunScope {
  std::string connection;  // the config's id
  std::string repo;        // "owner/name"
  uint64_t issue = 0;      // 0: the Work was not made from one
  std::string branch, base;
};

// Nothing, or why git's question is not one for this repository's token.
Refusal whyNotThisRepository(const RunScope& scope, const std::string& gitHost, const std::string& protocol,
                             const std::string& host, const std::string& path);
// The repository of a path as git has it: "o/r" of "o/r.git/".
std::string repositoryIn(std::string_view path);

}  // namespace oc::hub
