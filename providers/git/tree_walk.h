// Every file and directory of a tree, looked at by several threads at once: what takes the time is the kernel's, and a
// processor each.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oc::git {

struct TreePlace {
  std::string path;    // relative to the tree's root; empty: the root itself
  unsigned marks = 0;  // of the visitor that saw it
  unsigned depth = 0;  // directories above it
};

// Of one thread.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() noexcept(false) = default;
  // An entry of the directory, which no link leads to. Of a directory, the result is its own marks.
  virtual unsigned look(const TreePlace& directory, const char* name, const struct stat& stats) = 0;
};

// What could not be looked at, relative to the root, and why.
struct UnseenPart {
  std::string path, why;
};

constexpr unsigned deepestTree = 512;  // directories in each other
constexpr unsigned mostTreeThreads = 4;

// Looks at everything, with a thread for each visitor, this one among them. The first part that cannot be looked at
// ends it: a closed directory, one that is nested too deep, more than `mostEntries` files. Fewer than a thousand
// descriptors are open at a time. Links are not followed, and what is renamed meanwhile leads nowhere else. `entries`
// is how many there were.
std::optional<UnseenPart> walkTree(const std::string& root, const std::vector<TreeVisitor*>& visitors,
                                   uint64_t mostEntries, uint64_t& entries);

}  // namespace oc::git
