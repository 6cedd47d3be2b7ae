// What git outside would obey, if an agent could write it. Looked at from outside when the run has ended, since what
// the sandbox takes away again has done no harm.
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools.h"

namespace oc::battery {

namespace {

std::string git(const Targets& t, const char* name = "") { return t["workspace"] + "/.git" + name; }

Result put(const std::string& path) {
  File file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0700));
  if (!file) return held(errno);
  if (write(file.get(), "[attack]\n", 9) < 0) return held(errno);
  return look(path);
}

Result writeConfig(const Targets& t) {
  auto result = put(git(t, "/config"));
  return result.kind == Result::Kind::Look ? through() : result;
}
Result replaceConfig(const Targets& t) {
  auto path = t["workspace"] + "/attack-config";
  writeText(path, "[core]\n");
  return judge(rename(path.c_str(), git(t, "/config").c_str()));
}
Result lockConfig(const Targets& t) {
  // As git itself writes: a lock beside it, renamed over it.
  auto lock = git(t, "/config.lock");
  writeText(lock, "[core]\n");
  auto result = judge(rename(lock.c_str(), git(t, "/config").c_str()));
  unlink(lock.c_str());
  return result;
}
Result addHook(const Targets& t) { return put(git(t, "/hooks/post-checkout")); }
Result moveHooks(const Targets& t) {
  if (rename(git(t, "/hooks").c_str(), git(t, "/hooks-away").c_str()) < 0) return held(errno);
  rename(git(t, "/hooks-away").c_str(), git(t, "/hooks").c_str());
  return through();
}
Result writeAttributes(const Targets& t) { return put(git(t, "/info/attributes")); }
Result writeWorktreeConfig(const Targets& t) {
  auto result = put(git(t, "/config.worktree"));
  return result.kind == Result::Kind::Look ? through() : result;
}
Result addModule(const Targets& t) {
  mkdir(git(t, "/modules").c_str(), 0700);
  mkdir(git(t, "/modules/attack").c_str(), 0700);
  return put(git(t, "/modules/attack/config"));
}
Result addWorktree(const Targets& t) {
  mkdir(git(t, "/worktrees").c_str(), 0700);
  mkdir(git(t, "/worktrees/attack").c_str(), 0700);
  return put(git(t, "/worktrees/attack/config.worktree"));
}
Result redirect(const Targets& t) { return put(git(t, "/commondir")); }
Result moveGit(const Targets& t) {
  if (rename(git(t).c_str(), git(t, "-away").c_str()) < 0) return held(errno);
  rename(git(t, "-away").c_str(), git(t).c_str());
  return through();
}
Result exchangeGit(const Targets& t) {
  auto other = t["workspace"] + "/attack-git";
  mkdir(other.c_str(), 0700);
  long swapped = syscall(SYS_renameat2, AT_FDCWD, other.c_str(), AT_FDCWD, git(t).c_str(), RENAME_EXCHANGE);
  if (swapped < 0) return held(errno);
  syscall(SYS_renameat2, AT_FDCWD, other.c_str(), AT_FDCWD, git(t).c_str(), RENAME_EXCHANGE);
  return through();
}
Result moveWorkspace(const Targets& t) {
  auto away = t["workspace"] + "-away";
  if (rename(t["workspace"].c_str(), away.c_str()) < 0) return held(errno);
  rename(away.c_str(), t["workspace"].c_str());
  return through();
}

}  // namespace

std::vector<Attack> gitTricks() {
  return {
      {"write .git/config", "git", writeConfig},
      {"rename a file onto .git/config", "git", replaceConfig},
      {"write .git/config as git does, by its lock", "git", lockConfig},
      {"add a hook", "git", addHook},
      {"move the hooks away", "git", moveHooks},
      {"write .git/info/attributes", "git", writeAttributes},
      {"write .git/config.worktree", "git", writeWorktreeConfig},
      {"add a submodule's repository", "git", addModule},
      {"add a worktree's config", "git", addWorktree},
      {"redirect git by .git/commondir", "git", redirect},
      {"move .git away", "git", moveGit},
      {"exchange .git with a directory of one's own", "git", exchangeGit},
      {"move the workspace away", "git", moveWorkspace},
  };
}

}  // namespace oc::battery
