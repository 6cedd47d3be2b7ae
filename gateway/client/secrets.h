// A run's secrets on their way from a file into an environment.
#pragma once

#include <kj/common.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace oc::gateway {

// Memory of its own that is not swapped where that can be had, not dumped, and wiped when it goes away.
class WipedMemory {
 public:
  explicit WipedMemory(size_t size);
  ~WipedMemory();
  KJ_DISALLOW_COPY(WipedMemory);

  char* begin() { return memory; }
  size_t size() const { return bytes; }
  void wipe();

 private:
  char* memory;
  size_t bytes;
};

class Secrets {
 public:
  // Reads a file of at most 1 MiB and deletes it. It must be a regular file with one JSON object of texts, whose names
  // can be variables of an environment. Throws, without a word of its content, when anything of it fails; when it can't
  // be deleted, too.
  explicit Secrets(const std::string& file);

  // "NAME=value" each, as execve wants them.
  const std::vector<char*>& variables() const { return entries; }
  // Whether a variable "NAME=…" is one of them.
  bool replace(std::string_view variable) const;
  void wipe();

 private:
  void parse(size_t size);

  WipedMemory text, decoded;
  std::vector<char*> entries;
};

}  // namespace oc::gateway
