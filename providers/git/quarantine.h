// Where objects from outside lie until they are known to be sound.
#pragma once

#include <kj/async.h>
#include <kj/io.h>
#include <kj/timer.h>

#include <string>

namespace oc::git {

// A directory in a repository's object directory that nobody looks into but whom we tell. Its name is one of those that
// git's own gc sweeps, too. A lock on it says that its maker lives.
class Quarantine {
 public:
  explicit Quarantine(std::string objectDirectory);

  const std::string& path() const { return directory; }

  // Moves the pack "pack-ID" and its indexes to the repository's own, each only if there is none of that name: the
  // index last, which makes it visible. What was written is on the disk before.
  void migrate(const std::string& packName);
  // How many objects the pack has, from its header.
  uint32_t countObjects(const std::string& packName) const;

  kj::Promise<void> remove(kj::Timer& timer);

  // Removes those whose makers were killed.
  static kj::Promise<void> sweep(kj::Timer& timer, const std::string& objectDirectory);

 private:
  std::string objects, directory;
  kj::AutoCloseFd lock;
};

}  // namespace oc::git
