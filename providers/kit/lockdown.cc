#include "lockdown.h"

#include <errno.h>
#include <kj/debug.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "landlock.h"
#include "namespaces.h"
#include "syscall_filter.h"

namespace oc::kit {

namespace {

void limit(int resource, uint64_t value, const char* name) {
  struct rlimit current;
  KJ_SYSCALL(getrlimit(static_cast<__rlimit_resource>(resource), &current), name);
  if (current.rlim_max != RLIM_INFINITY && value > current.rlim_max) value = current.rlim_max;
  struct rlimit wanted {
    value, value
  };
  KJ_SYSCALL(setrlimit(static_cast<__rlimit_resource>(resource), &wanted), name);
}

void limitResources(const Profile& profile) {
  limit(RLIMIT_CORE, 0, "RLIMIT_CORE");
  limit(RLIMIT_NOFILE, profile.maxOpenFiles, "RLIMIT_NOFILE");
  if (profile.maxFileSize != 0) limit(RLIMIT_FSIZE, profile.maxFileSize, "RLIMIT_FSIZE");
#ifndef OPEN_CONDUIT_SANITIZED  // the sanitizers' shadow is larger than any sensible limit
  if (profile.maxAddressSpace != 0) limit(RLIMIT_AS, profile.maxAddressSpace, "RLIMIT_AS");
#endif
  umask(022);
}

// Before 5.14 the limit counts all of the user's processes, wherever they are.
bool kernelCountsByNamespace() {
  struct utsname system;
  KJ_SYSCALL(uname(&system));
  int major = 0, minor = 0;
  return sscanf(system.release, "%d.%d", &major, &minor) == 2 && (major > 5 || (major == 5 && minor >= 14));
}

// In the new user namespace: its own limit for what lies outside stays the one that it was made with.
void limitProcesses(const Profile& profile, Protections& protections) {
  if (profile.maxProcesses == 0) return;
  if (protections.userNamespace && kernelCountsByNamespace()) {
    limit(RLIMIT_NPROC, profile.maxProcesses, "RLIMIT_NPROC");
  } else {
    protections.missing.push_back("a limit on processes of its own (a user namespace, Linux 5.14)");
  }
}

void closeDescriptorsAbove(int highest) { KJ_SYSCALL(syscall(SYS_close_range, highest + 1, ~0u, 0)); }

void dropCapabilities() {
  // The bounding set can only be lowered by who may (in the user namespace just made, we are); elsewhere
  // no_new_privs makes it meaningless.
  for (cap_value_t cap = 0; cap_get_bound(cap) >= 0; ++cap) {
    if (cap_drop_bound(cap) < 0 && errno != EPERM) KJ_FAIL_SYSCALL("cap_drop_bound", errno);
  }
  KJ_SYSCALL(cap_reset_ambient());
  cap_t none = cap_init();
  KJ_REQUIRE(none != nullptr, "cap_init failed");
  KJ_DEFER(cap_free(none));
  KJ_SYSCALL(cap_set_proc(none));
}

void applyLandlock(const Profile& profile, Protections& protections) {
  protections.landlockAbi = landlockAbi();
  KJ_REQUIRE(!profile.landlockFiles || protections.landlockAbi >= 1,
             "this kernel does not grant a protection that is needed: Landlock (Linux 5.13 or later, enabled)");
  bool scopes = profile.landlockScopes != Need::No;
  if (scopes && protections.landlockAbi < 6) {
    KJ_REQUIRE(profile.landlockScopes != Need::Required,
               "this kernel does not grant a protection that is needed: Landlock scopes (ABI 6, Linux 6.12)");
    protections.missing.push_back("Landlock scopes for signals and abstract sockets (ABI 6, Linux 6.12)");
  }
  auto result =
      restrictByLandlock(protections.landlockAbi, profile.landlockFiles, profile.files, profile.connectPorts, scopes);
  protections.landlockFiles = result.files;
  protections.landlockScopes = result.scopes;
}

void denyWritableCode(const Profile& profile, Protections& protections) {
  if (!profile.denyWriteExecute) return;
  constexpr int setMdwe = 65;  // PR_SET_MDWE, Linux 6.3
  if (prctl(setMdwe, 1, 0, 0, 0) < 0) protections.missing.push_back("memory-deny-write-execute (Linux 6.3)");
}

void readBack(Protections& protections) {
  protections.noNewPrivs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  protections.notDumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  protections.seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
  KJ_REQUIRE(protections.noNewPrivs && protections.notDumpable && protections.seccomp,
             "the kernel does not confirm the lockdown", protections.noNewPrivs, protections.notDumpable,
             protections.seccomp);
}

}  // namespace

Protections lockDown(const Profile& profile, int highestDescriptor, void (*onServing)(pid_t)) {
  Protections protections;
  limitResources(profile);
  closeDescriptorsAbove(highestDescriptor);
  enterNamespaces(profile, protections, onServing);
  limitProcesses(profile, protections);
  dropCapabilities();
  KJ_SYSCALL(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
  KJ_SYSCALL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  denyWritableCode(profile, protections);
  applyLandlock(profile, protections);
  restrictBySeccomp(profile);
  readBack(protections);
  return protections;
}

}  // namespace oc::kit
