#include "profile.h"

#include <kj/common.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/paths.h"
#include "checkout.h"

namespace oc::git {

namespace {

using kit::Access;
using kit::FileRule;

// Rules are optional: what is missing is told by the method, as a refusal, and not by an instance that does not start.
void allow(kit::Profile& profile, const std::string& path, Access access) {
  profile.files.push_back({path, access, true});
}

// The path without links; as it is when it cannot be followed to its end: the method tells why.
std::string resolved(const std::string& path) {
  if (path.empty()) return path;
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  KJ_DEFER(free(real));
  return real;
}

// A failure shows when the method wants to use it.
void makeOwn(const std::string& path, mode_t mode) { mkdir(path.c_str(), mode); }

// The checkout to read, and what it borrows from.
void allowCheckout(kit::Profile& profile, const std::string& checkout, const std::string& gitDir) {
  allow(profile, checkout, Access::Read);
  allow(profile, gitDir, Access::Read);  // may be linked to elsewhere
  for (auto& directory : alternatesOf(gitDir + "/objects")) allow(profile, directory, Access::Read);
}

// The workspace to make or delete: with the right to its own entry in the parent, but to no file there.
void allowWorkspace(kit::Profile& profile, const std::string& workspace) {
  allow(profile, workspace, Access::ReadWrite);
  allow(profile, parentOf(workspace), Access::Directories);
}

// New objects, and one branch with its log. The config, the hooks, HEAD, the index and other refs stay out of reach.
void allowSaving(kit::Profile& profile, const std::string& gitDir) {
  for (const char* part : {"/objects", "/refs/heads", "/logs/refs/heads", "/reftable"}) {
    allow(profile, gitDir + part, Access::ReadWrite);
  }
}

// Memory that a pack's contents can make a git use, in address space.
constexpr uint64_t receiverMemory = 8ull << 30;
// Git has a thread for each processor, in two programs at most, and the instance is one.
constexpr uint64_t mostProcesses = 1024;
// What looks at files and deletes them, without git: five million linked files are half a gigabyte.
constexpr uint64_t walkersMemory = 2ull << 30;
// A pack's index is smaller than the pack, but for very small objects.
constexpr uint64_t indexSize = 256ull << 20;

}  // namespace

kit::Profile profileOf(const Job& job) {
  kit::Profile profile;
  profile.files = kit::systemFiles();
  auto checkout = resolved(job.checkout);
  auto gitDir = checkout.empty() ? checkout : resolved(checkout + "/.git");
  switch (job.role) {
    case Role::Check: break;
    case Role::Inspect: allowCheckout(profile, checkout, gitDir); break;
    case Role::Clone:
      makeOwn(job.workspace, 0755);
      allowCheckout(profile, checkout, gitDir);
      allowWorkspace(profile, job.workspace);
      break;
    case Role::Worktree:
      makeOwn(job.workspace, 0755);
      allowCheckout(profile, checkout, gitDir);
      allow(profile, gitDir, Access::ReadWrite);
      allowWorkspace(profile, job.workspace);
      break;
    case Role::Pack:
      makeOwn(viewOf(job), 0700);
      allow(profile, job.workspace, Access::Read);
      allow(profile, viewOf(job), Access::ReadWrite);
      allow(profile, parentOf(job.workspace), Access::Directories);
      break;
    case Role::Receive:
      allowCheckout(profile, checkout, gitDir);
      allowSaving(profile, gitDir);
      profile.maxFileSize = job.maxSize + indexSize;
      profile.maxAddressSpace = receiverMemory;
      break;
    case Role::Scan:
      profile.files = {{"/dev/null", Access::ReadWrite}};
      allow(profile, job.workspace, Access::Read);
      profile.seccomp = kit::SeccompList::Alone;
      profile.maxAddressSpace = walkersMemory;
      break;
    case Role::Remove:
      profile.files = {{"/dev/null", Access::ReadWrite}};
      allowWorkspace(profile, job.workspace);
      allow(profile, viewOf(job), Access::ReadWrite);
      if (!gitDir.empty()) {
        allow(profile, gitDir, Access::Read);
        allow(profile, gitDir + "/worktrees", Access::ReadWrite);
      }
      profile.seccomp = kit::SeccompList::Alone;
      profile.maxAddressSpace = walkersMemory;
      break;
  }
  profile.denyAllSockets = true;
  profile.maxProcesses = mostProcesses;
  return profile;
}

}  // namespace oc::git
