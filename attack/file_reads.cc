// Ways to a file by its name, and around the name.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools.h"

extern char** environ;

namespace oc::battery {

namespace {

std::string secretOf(const Targets& t) { return t["own"] + "/secret"; }

Result byPath(const Targets& t) { return readPath(secretOf(t), t); }
Result byParents(const Targets& t) { return readPath(t["workspace"] + "/" + upToRoot() + secretOf(t).substr(1), t); }
Result byOwnRoot(const Targets& t) { return readPath("/proc/self/root" + secretOf(t), t); }
Result byOwnDirectory(const Targets& t) { return readPath("/proc/self/cwd/" + upToRoot() + secretOf(t).substr(1), t); }

Result bySymlink(const Targets& t) {
  auto link = t["workspace"] + "/attack-link";
  if (symlink(secretOf(t).c_str(), link.c_str()) < 0) return held(errno);
  auto result = readPath(link, t);
  unlink(link.c_str());
  return result;
}

Result byHardLink(const Targets& t) {
  auto link = t["workspace"] + "/attack-hard-link";
  if (linkat(AT_FDCWD, secretOf(t).c_str(), AT_FDCWD, link.c_str(), 0) < 0) return held(errno);
  auto result = readPath(link, t);
  unlink(link.c_str());
  return result;
}

Result byRename(const Targets& t) {
  auto taken = t["workspace"] + "/attack-taken";
  if (rename((t["own"] + "/to-take").c_str(), taken.c_str()) < 0) return held(errno);
  auto result = readPath(taken, t);
  unlink(taken.c_str());
  return result;
}

// Each of them that lets in, and what it says last.
Result eachProcess(const Targets& t, const std::string& way) {
  int error = ESRCH;
  for (pid_t pid : otherProcesses()) {
    auto result = readPath("/proc/" + std::to_string(pid) + way + secretOf(t).substr(1), t);
    if (result.kind == Result::Kind::Through) return result;
    if (result.error != 0) error = result.error;
  }
  return held(error);
}

Result byOthersRoot(const Targets& t) { return eachProcess(t, "/root/"); }
Result byOthersDirectory(const Targets& t) { return eachProcess(t, "/cwd/" + upToRoot()); }

Result byLeftDirectory(const Targets& t) {
  int error = EBADF;
  for (int fd = 3; fd < 4096; ++fd) {
    struct stat stats;
    if (fstat(fd, &stats) < 0 || !S_ISDIR(stats.st_mode)) continue;
    for (auto& name : {std::string("secret"), upToRoot() + secretOf(t).substr(1)}) {
      File file(openat(fd, name.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file) {
        error = errno;
      } else if (readFrom(file.get(), t).kind == Result::Kind::Through) {
        return through();
      }
    }
  }
  return held(error);
}

Result byLeftFile(const Targets& t) {
  for (int fd = 3; fd < 4096; ++fd) {
    char buffer[4096];
    ssize_t n = pread(fd, buffer, sizeof(buffer), 0);
    if (n > 0 && std::string(buffer, static_cast<size_t>(n)).find(t.marker()) != std::string::npos) return through();
  }
  return held(EBADF);
}

Result byRunningIt(const Targets& t) {
  int pipes[2];
  if (pipe(pipes) < 0) return held(errno);
  pid_t child = fork();
  if (child < 0) return held(errno);
  if (child == 0) {
    dup2(pipes[1], STDOUT_FILENO);
    auto program = t["own"] + "/program";
    execl(program.c_str(), "program", nullptr);
    _exit(errno);
  }
  close(pipes[1]);
  auto answer = answerOf(pipes[0], t, 2000);
  close(pipes[0]);
  int status;
  waitpid(child, &status, 0);
  if (answer.find(t.marker()) != std::string::npos) return through();
  return held(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

Result bySize(const Targets& t) {
  struct stat stats;
  return judge(lstat(secretOf(t).c_str(), &stats));
}

Result byLinkText(const Targets& t) {
  char text[4096];
  ssize_t n = readlink((t["own"] + "/link").c_str(), text, sizeof(text));
  if (n < 0) return held(errno);
  return std::string(text, static_cast<size_t>(n)).find(t.marker()) != std::string::npos ? through() : held();
}

Result byNames(const Targets& t) {
  DIR* directory = opendir(t["own"].c_str());
  if (directory == nullptr) return held(errno);
  closedir(directory);
  for (auto& name : namesIn(t["own"])) {
    if (name.find(t.marker()) != std::string::npos) return through();
  }
  return held();
}

Result byWatching(const Targets& t) {
  File notify(inotify_init1(IN_CLOEXEC));
  if (!notify) return held(errno);
  return judge(inotify_add_watch(notify.get(), secretOf(t).c_str(), IN_ALL_EVENTS));
}

Result byAttributes(const Targets& t) {
  if (!t.has("attributes")) return absent();
  char value[256];
  ssize_t n = getxattr(secretOf(t).c_str(), "user.secret", value, sizeof(value));
  if (n < 0) return held(errno);
  return std::string(value, static_cast<size_t>(n)) == t.marker() ? through() : held();
}

Result ofAnotherRun(const Targets& t) { return readPath(t["beside"] + "/secret", t); }
Result ofOwnPrivatePart(const Targets& t) {
  return t.has("private") ? readPath(t["private"] + "/secret", t) : absent();
}
Result aCredential(const Targets& t) {
  if (!t.has("credential")) return absent();
  File file(open(t["credential"].c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return held(errno);
  char byte;
  ssize_t n = read(file.get(), &byte, 1);
  return n < 0 ? held(errno) : n == 0 ? held() : through();
}
Result anOrdinaryFile(const Targets& t) { return readPath(t["outside"] + "/secret", t); }

Result ofTheEnvironment(const Targets& t) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string(*entry).find(t.marker()) != std::string::npos) return through();
  }
  return held();
}

}  // namespace

std::vector<Attack> fileReads() {
  return {
      {"read the state by its path", "own", byPath},
      {"climb to the state by .. from the workspace", "own", byParents},
      {"a symbolic link to the state in the workspace", "own", bySymlink},
      {"a hard link to the state in the workspace", "own", byHardLink},
      {"rename the state into the workspace", "own", byRename},
      {"read the state by /proc/self/root", "own", byOwnRoot},
      {"read the state by /proc/self/cwd", "own", byOwnDirectory},
      {"read the state by another process's root", "own", byOthersRoot},
      {"read the state by another process's directory", "own", byOthersDirectory},
      {"a directory descriptor that was left open", "environment", byLeftDirectory},
      {"a file descriptor that was left open", "environment", byLeftFile},
      {"a secret in the environment", "environment", ofTheEnvironment},
      {"run a program in the state", "own", byRunningIt},
      {"the state's size and times", "own", bySize},
      {"where a link in the state points", "own", byLinkText},
      {"the names in the state", "own", byNames},
      {"watch the state by inotify", "own", byWatching},
      {"the state's extended attributes", "own", byAttributes},
      {"read another run's files", "own", ofAnotherRun},
      {"read the run's own private part", "own", ofOwnPrivatePart},
      {"read a credential of the operator", "credential", aCredential},
      {"read a file of the operator", "read", anOrdinaryFile},
  };
}

}  // namespace oc::battery
