// Deletes a tree in small steps, however deep it is and whatever its maker did to it.
#pragma once

#include <kj/async.h>
#include <kj/io.h>
#include <kj/timer.h>

#include <string>
#include <vector>

namespace oc::git {

// No link is followed. Directories that their owner closed to itself are opened. A tree that is deeper than descriptors
// last is taken apart: what lies too deep is moved up into the root first.
class TreeRemover {
 public:
  // `path` need not exist. With `keepRoot` only what is in it goes.
  explicit TreeRemover(std::string path, bool keepRoot = false);
  // Deletes up to a few thousand entries; true when all is gone. Throws, naming what could not be deleted.
  bool step();

 private:
  struct Level {
    kj::AutoCloseFd directory;
    std::string name;                  // in the level above
    std::vector<std::string> entries;  // directories that are left
    bool listed = false;
  };

  void openRoot();
  kj::AutoCloseFd openInner(int parent, const std::string& name);
  void enter(const std::string& name);
  void leave();
  void deleteFilesOf(Level& level);
  void moveUp(const std::string& name);

  std::string path;
  bool keepRoot;
  bool started = false;
  std::vector<Level> levels;
  size_t movedUp = 0;
  size_t budget = 0;
};

// All of it, with the loop free to do other things in between.
kj::Promise<void> removeTreeInSteps(kj::Timer& timer, std::string path, bool keepRoot = false);

}  // namespace oc::git
