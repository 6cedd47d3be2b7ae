// What the attacks have in common.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "attack.h"

namespace oc::battery {

// Closed when it goes.
class File {
 public:
  explicit File(int fd) : fd(fd) {}
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

 private:
  int fd;
};

// Through when the secret is among the next bytes.
Result readFrom(int fd, const Targets& t);
Result readPath(const std::string& path, const Targets& t);
bool writeText(const std::string& path, const std::string& text);
// Of a file that is small; empty where it cannot be read.
std::string textOf(const std::string& path, size_t most = 1 << 16);

// "../" often enough to be at the root.
std::string upToRoot();
// "/a/b/c": "/", "/a", "/a/b".
std::vector<std::string> directoriesAbove(const std::string& path);

// The other processes in /proc that are neither this one nor those that started it.
std::vector<pid_t> otherProcesses();
std::vector<std::string> namesIn(const std::string& directory);

// Waits that long for something to read.
bool waitToRead(int fd, int milliseconds);
// What comes back within the time, at most 64 KiB; ends early when the secret is in it.
std::string answerOf(int fd, const Targets& t, int milliseconds = 400);

// A user and mount namespace of its own, with this user mapped. 0, or errno.
int ownNamespaces();

}  // namespace oc::battery
