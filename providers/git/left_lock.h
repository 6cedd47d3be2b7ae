// The lock on a branch that a git left when it was killed.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <optional>
#include <string>

namespace oc::git {

// What lies in the lock's place at one moment. Nothing is told of whose it is: that is for the caller to know.
class LeftLock {
 public:
  // Looks. `gitDir` is where the refs are; `branch` is a name that git accepts.
  LeftLock(const std::string& gitDir, const std::string& branch);

  const std::string& path() const { return file; }

  // Removes the lock if it was there then, and is the same now. Whether it is gone by this. A git that lives holds one
  // for milliseconds, and one that waits for locks has seen it stay.
  bool removeIfUntouched() const;

 private:
  struct Identity {
    dev_t device;
    ino_t inode;
    off_t size;
    timespec changed;
    bool operator==(const Identity& other) const;
  };
  std::optional<Identity> look() const;

  std::string file;
  std::optional<Identity> before;
};

}  // namespace oc::git
