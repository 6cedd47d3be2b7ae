#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/failure.h"
#include "proto/rpc.h"

namespace oc::cli {

namespace {

// As in proto/control.capnp.
constexpr size_t mostTitle = 1024;
constexpr size_t mostBody = 16u << 20;

void checkTitle(const std::string& title) {
  if (title.size() > mostTitle) {
    throw wrongUsage(fmt::format("--title has {} bytes and may have {}", title.size(), mostTitle),
                     "put the rest into the body (--body-file)");
  }
  if (hasControlCharacters(title) || !isUtf8(title)) {
    throw wrongUsage(fmt::format("--title is not one line of plain UTF-8 text: {}", shortened(printable(title), 128)));
  }
}

// One byte more than may be tells a body that is too long from one that just fits, also where no size is known before.
std::string readBodyFile(World& world, const std::string& path) {
  if (path == "-") return world.readInput(mostBody + 1);
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw wrongUsage(fmt::format("--body-file {}: {}", printable(path), strerror(errno)));
  kj::AutoCloseFd file(fd);
  return readAtMost(fd, mostBody + 1);
}

std::string readBody(World& world, const std::string& path) {
  if (path.empty()) return "";
  std::string body;
  try {
    body = readBodyFile(world, path);
  } catch (const kj::Exception& exception) {
    throw wrongUsage(fmt::format("--body-file {}: {}", printable(path), describe(exception)));
  }
  if (body.size() > mostBody) {
    throw wrongUsage(fmt::format("--body-file {} has more than 16 MiB", printable(path)),
                     "put what is large into the repository and name it in the body");
  }
  return body;
}

}  // namespace

Request readRequest(World& world, const RequestWords& words) {
  auto slash = words.binding.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == words.binding.size()) {
    throw wrongUsage(fmt::format("--binding {} is not SCOPE/BINDING", printable(words.binding)),
                     "write the scope's and the binding's id as they are in the config, with a slash between");
  }
  checkTitle(words.title);
  return {words.binding.substr(0, slash), words.binding.substr(slash + 1), words.title,
          readBody(world, words.bodyFile)};
}

}  // namespace oc::cli
