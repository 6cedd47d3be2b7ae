#include "attach.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <cstdlib>

#include "base/text.h"
#include "refusals.h"

namespace oc::docker {

namespace {

constexpr size_t mostHeadBytes = 8192;
constexpr size_t mostErrorBytes = 4096;

struct Attaching {
  Attaching(kj::AsyncIoStream& stream, std::string request) : stream(stream), request(kj::mv(request)) {}

  kj::AsyncIoStream& stream;
  std::string request, head, error;
  char byte;
  kj::byte buffer[mostErrorBytes];

  // Byte by byte: whatever comes behind the head is the container's, and somebody else's to read.
  kj::Promise<void> readHead() {
    return stream.read(&byte, 1, 1).then([this](size_t) -> kj::Promise<void> {
      head.push_back(byte);
      KJ_REQUIRE(head.size() <= mostHeadBytes, "the engine's answer to an attach has a head that is too long");
      if (head.ends_with("\r\n\r\n")) return kj::READY_NOW;
      return readHead();
    });
  }

  // "HTTP/1.1 101 UPGRADED" → 101; 0 for anything else.
  unsigned status() const {
    if (!head.starts_with("HTTP/1.1 ") || head.size() < 13 || (head[12] != ' ' && head[12] != '\r')) return 0;
    return static_cast<unsigned>(strtoul(head.substr(9, 3).c_str(), nullptr, 10));
  }

  // The connection is of no more use, so as much as comes in one go will do.
  kj::Promise<void> readError() {
    return stream.tryRead(buffer, 1, sizeof(buffer)).then([this](size_t n) {
      error.assign(reinterpret_cast<char*>(buffer), n);
    });
  }
};

}  // namespace

kj::Promise<std::optional<Refusal>> attach(kj::AsyncIoStream& stream, const std::string& container,
                                           const std::string& context) {
  auto attaching = kj::heap<Attaching>(
      stream, fmt::format("POST /v{}.{}/containers/{}/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\n"
                          "Host: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n",
                          leastApiMajor, leastApiMinor, container));
  auto& state = *attaching;
  return stream.write(state.request.data(), state.request.size())
      .then([&state]() { return state.readHead(); })
      .then([&state, context, attaching = kj::mv(attaching)]() mutable -> kj::Promise<std::optional<Refusal>> {
        auto status = state.status();
        if (status == 101) return std::optional<Refusal>();
        return state.readError().then([&state, status, context, attaching = kj::mv(attaching)]() {
          Answer answer;
          answer.status = status;
          answer.message = shortened(printable(state.error), 600);
          return std::optional<Refusal>(refusalOf(answer, "attach to a container", context));
        });
      });
}

}  // namespace oc::docker
