#include "socket_file.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"

namespace oc::gateway {

namespace {

// The kernel cuts it to net.core.somaxconn.
constexpr int backlog = 4096;

[[noreturn]] void failAt(const char* step, const std::string& path) {
  fail(fmt::format("{} {}: {}", step, path, strerror(errno)));
}

}  // namespace

sockaddr_un unixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    fail(fmt::format("a socket's path has 1 to {} bytes, and \"{}\" has {}", sizeof(address.sun_path) - 1, path,
                     path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

kj::AutoCloseFd listenAt(const std::string& path) {
  auto address = unixAddress(path);
  int fd;
  KJ_SYSCALL(fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  kj::AutoCloseFd listener(fd);
  if (unlink(path.c_str()) < 0 && errno != ENOENT) failAt("can't replace", path);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) failAt("can't make the socket", path);
  // The folder decides who reaches it; the agent's user is not ours.
  if (chmod(path.c_str(), 0666) < 0) failAt("can't set the mode of", path);
  if (listen(fd, backlog) < 0) failAt("can't listen at", path);
  return listener;
}

}  // namespace oc::gateway
