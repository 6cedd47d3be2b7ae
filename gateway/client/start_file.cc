#include "start_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/fd.h"

namespace oc::gateway {

namespace {

constexpr size_t mostBytes = 8u << 20;

std::string readAndDelete(const std::string& file) {
  int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) fail(fmt::format("the start file {} can't be opened: {}", file, strerror(errno)));
  kj::AutoCloseFd opened(fd);
  if (unlink(file.c_str()) < 0) fail(fmt::format("the start file {} can't be deleted: {}", file, strerror(errno)));
  struct stat status;
  if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) fail(fmt::format("the start file {} is no file", file));
  if (static_cast<uint64_t>(status.st_size) > mostBytes) {
    fail(fmt::format("the start file {} is larger than {} bytes", file, mostBytes));
  }
  std::string text(static_cast<size_t>(status.st_size), '\0');
  for (size_t at = 0; at < text.size();) {
    auto n = ::read(fd, text.data() + at, text.size() - at);
    if (n <= 0) fail(fmt::format("the start file {} can't be read: {}", file, n < 0 ? strerror(errno) : "it ends"));
    at += static_cast<size_t>(n);
  }
  return text;
}

}  // namespace

StartFile::StartFile(const std::string& file) {
  auto text = readAndDelete(file);
  auto* list = &variables;
  for (size_t at = 0; at < text.size();) {
    auto end = text.find('\0', at);
    if (end == std::string::npos) fail(fmt::format("the start file {} ends in the middle of a text", file));
    auto entry = text.substr(at, end - at);
    at = end + 1;
    if (list == &variables && entry.empty()) {
      list = &words;
    } else if (list == &variables && entry.find('=') == std::string::npos) {
      fail(fmt::format("the start file {} has a variable without a value", file));
    } else {
      list->push_back(std::move(entry));
    }
  }
  if (words.empty()) fail(fmt::format("the start file {} has no command", file));
}

bool StartFile::replaces(const char* variable) const {
  std::string_view entry = variable;
  auto name = entry.substr(0, entry.find('=') + 1);
  return !name.empty() &&
         std::any_of(variables.begin(), variables.end(), [&](const std::string& own) { return own.starts_with(name); });
}

}  // namespace oc::gateway
