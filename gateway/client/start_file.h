// What a container's agent is and gets, when that is decided after the container was started.
#pragma once

#include <string>
#include <vector>

namespace oc::gateway {

// Of a file of texts that each end with a NUL: "NAME=value" any number of times, an empty one, then the command's
// words.
class StartFile {
 public:
  // Reads a regular file of at most 8 MiB and deletes it. Throws, naming the file, when anything of it fails, and when
  // there is no command in it.
  explicit StartFile(const std::string& file);

  const std::vector<std::string>& environment() const { return variables; }
  const std::vector<std::string>& command() const { return words; }
  // Whether a variable "NAME=…" is one of its own.
  bool replaces(const char* variable) const;

 private:
  std::vector<std::string> variables, words;
};

}  // namespace oc::gateway
