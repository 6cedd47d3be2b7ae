// What the tests of the state database share.
#pragma once

#include <SQLiteCpp/Database.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>

#include "base/fd.h"
#include "daemon/state/store.h"
#include "tests/catch.h"

namespace oc::state {

// A directory that goes away with the test. In memory where there is such a place: what is synced need not
// wait for a disk.
class Scratch {
 public:
  Scratch() {
    std::string pattern = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    pattern += "/oc-state-XXXXXX";
    KJ_REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
  }
  ~Scratch() { removeTree(directory); }
  KJ_DISALLOW_COPY(Scratch);

  std::string operator/(const std::string& name) const { return directory + "/" + name; }
  std::string database() const { return directory + "/state.db"; }
  const std::string& path() const { return directory; }

 private:
  std::string directory;
};

inline std::unique_ptr<Store> mustOpen(const std::string& path) {
  auto opened = Store::open(path);
  if (!opened) FAIL(opened.refusal().reason << ": " << opened.refusal().what);
  return std::move(opened).value();
}

inline Refusal mustRefuse(const std::string& path) {
  auto opened = Store::open(path);
  REQUIRE_FALSE(opened.ok());
  return opened.refusal();
}

// Somebody else with the file: a person with an sqlite3 shell.
inline SQLite::Database byHand(const Scratch& scratch, int timeout = 0) {
  return SQLite::Database(scratch.database(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, timeout);
}

inline WorkRow someWork(const std::string& id) {
  WorkRow work;
  work.id = id;
  work.scope = "web";
  work.binding = "claude";
  work.title = "Mend the fence";
  work.createdAt = 1700000000000;
  work.checkout = "/home/o/project";
  work.workspaceMode = "clone";
  work.branch = "agent/" + id;
  return work;
}

inline RunRow someRun(const std::string& id, const std::string& work) {
  RunRow run;
  run.id = id;
  run.work = work;
  run.createdAt = 1700000000001;
  run.policyKind = "srt";
  return run;
}

// Runs `what` in a child of its own and gives back what it returned, or "threw: …".
inline std::string inChild(const std::function<std::string()>& what) {
  auto pipe = makePipe();
  pid_t child;
  KJ_SYSCALL(child = fork());
  if (child == 0) {
    std::string said;
    try {
      said = what();
    } catch (const kj::Exception& e) {
      said = std::string("threw: ") + e.getDescription().cStr();
    } catch (const std::exception& e) {
      said = std::string("threw: ") + e.what();
    }
    writeAll(pipe.second.get(), said);
    _exit(0);
  }
  pipe.second = nullptr;
  auto said = readAll(pipe.first.get(), 1 << 20);
  int status;
  KJ_SYSCALL(waitpid(child, &status, 0));
  if (!WIFEXITED(status)) said += " (and ended by signal " + std::to_string(WTERMSIG(status)) + ")";
  return said;
}

// As somebody whom file modes hold back.
inline void becomeOrdinary() {
  if (geteuid() != 0) return;
  KJ_SYSCALL(setresgid(65534, 65534, 65534));
  KJ_SYSCALL(setresuid(65534, 65534, 65534));
}

inline unsigned modeOf(const std::string& path) {
  struct stat stats;
  KJ_SYSCALL(lstat(path.c_str(), &stats), path);
  return stats.st_mode & 07777;
}

}  // namespace oc::state
