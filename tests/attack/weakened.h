// A provider as it is built, without one of its measures: to show what that measure is good for. Which one stands in a
// file `weakened` beside the program, which is read before anything is locked down.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace oc::weakened {

inline std::string readOrder() {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
  if (n <= 0) return "";
  std::string program(path, static_cast<size_t>(n));
  int fd = open((program.substr(0, program.rfind('/')) + "/weakened").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string text(1 << 16, '\0');
  ssize_t read = ::read(fd, text.data(), text.size());
  close(fd);
  text.resize(read < 0 ? 0 : static_cast<size_t>(read));
  return text;
}

inline const std::string order = readOrder();

}  // namespace oc::weakened
