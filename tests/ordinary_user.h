// Tests of isolation run as an ordinary user: root would pass where nobody else does, and srt refuses it.
#pragma once

#include <grp.h>
#include <kj/debug.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

namespace oc::test {

// Started by root: becomes the user named by OPEN_CONDUIT_TEST_USER, else nobody. For good.
inline void becomeOrdinaryUser() {
  if (geteuid() != 0) return;
  auto name = getenv("OPEN_CONDUIT_TEST_USER");
  auto user = getpwnam(name == nullptr ? "nobody" : name);
  KJ_REQUIRE(user != nullptr, "OPEN_CONDUIT_TEST_USER is no user");
  KJ_SYSCALL(setgroups(0, nullptr));
  KJ_SYSCALL(setgid(user->pw_gid));
  KJ_SYSCALL(setuid(user->pw_uid));
  setenv("HOME", user->pw_dir, 1);
}

}  // namespace oc::test
