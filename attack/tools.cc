#include "tools.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace oc::battery {

Targets Targets::parse(const std::string& text) {
  Targets result;
  for (size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, end - at);
    auto equals = line.find('=');
    if (equals != std::string::npos) result.set(line.substr(0, equals), line.substr(equals + 1));
    at = end + 1;
  }
  return result;
}

std::string Targets::toText() const {
  std::string text;
  for (auto& [name, value] : values) text += name + "=" + value + "\n";
  return text;
}

std::string Targets::operator[](const std::string& name) const {
  auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

long Targets::number(const std::string& name) const { return strtol((*this)[name].c_str(), nullptr, 10); }

Result through() { return {Result::Kind::Through, 0, ""}; }
Result held(int error) { return {Result::Kind::Held, error, ""}; }
Result absent() { return {Result::Kind::Absent, 0, ""}; }
Result look(const std::string& path) { return {Result::Kind::Look, 0, path}; }
Result judge(long value) { return value < 0 ? held(errno) : through(); }

File::~File() {
  if (fd >= 0) close(fd);
}

Result readFrom(int fd, const Targets& t) {
  std::string text(1 << 16, '\0');
  ssize_t n = read(fd, text.data(), text.size());
  if (n < 0) return held(errno);
  text.resize(static_cast<size_t>(n));
  return text.find(t.marker()) != std::string::npos ? through() : held();
}

Result readPath(const std::string& path, const Targets& t) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? readFrom(file.get(), t) : held(errno);
}

bool writeText(const std::string& path, const std::string& text) {
  File file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string textOf(const std::string& path, size_t most) {
  File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  char buffer[4096];
  while (file && text.size() < most) {
    ssize_t n = read(file.get(), buffer, sizeof(buffer));
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

std::string upToRoot() {
  std::string up;
  for (int i = 0; i < 40; ++i) up += "../";
  return up;
}

std::vector<std::string> directoriesAbove(const std::string& path) {
  std::vector<std::string> result = {"/"};
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    result.push_back(path.substr(0, slash));
  }
  return result;
}

std::vector<std::string> namesIn(const std::string& directory) {
  std::vector<std::string> names;
  DIR* open = opendir(directory.c_str());
  if (open == nullptr) return names;
  while (auto* entry = readdir(open)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(open);
  return names;
}

std::vector<pid_t> otherProcesses() {
  std::vector<pid_t> result;
  for (auto& name : namesIn("/proc")) {
    auto pid = static_cast<pid_t>(strtol(name.c_str(), nullptr, 10));
    if (pid > 0 && pid != getpid() && pid != getppid()) result.push_back(pid);
  }
  return result;
}

bool waitToRead(int fd, int milliseconds) {
  struct pollfd wait = {fd, POLLIN, 0};
  return poll(&wait, 1, milliseconds) == 1;
}

std::string answerOf(int fd, const Targets& t, int milliseconds) {
  constexpr size_t most = 1 << 16;
  std::string text;
  char buffer[4096];
  // Who has begun to answer goes on at once.
  constexpr int goesOn = 100;
  while (text.size() < most && waitToRead(fd, text.empty() ? milliseconds : std::min(milliseconds, goesOn))) {
    ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (text.find(t.marker()) != std::string::npos) break;
  }
  return text;
}

int ownNamespaces() {
  auto uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) return errno;
  auto put = [](const char* path, const std::string& text) {
    File file(open(path, O_WRONLY | O_CLOEXEC));
    return file && write(file.get(), text.data(), text.size()) > 0;
  };
  put("/proc/self/setgroups", "deny");
  put("/proc/self/gid_map", gid + " " + gid + " 1");
  return put("/proc/self/uid_map", uid + " " + uid + " 1") ? 0 : errno;
}

}  // namespace oc::battery
