// The head of a request to the proxy: read once, strictly. What could be read in two ways is an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "policy.h"

namespace oc::gateway {

// More than any client needs for a CONNECT, and enough for a plain request with its cookies.
constexpr size_t mostHeadBytes = 32 << 10;
constexpr size_t mostHeaders = 128;

enum class Body { None, Length, Chunked };

struct Request {
  bool connect = false;
  Target target;

  // Plain requests only.
  std::string head;  // as it goes to the server: our own request line and Host, no hop-by-hop headers
  Body body = Body::None;
  uint64_t bodyLength = 0;  // Body::Length
  bool upgrade = false;     // asks for another protocol: what follows the head waits for the server's 101
};

struct Malformed {
  int status = 400;  // 400 or 431
  std::string why;
  std::string host;  // what the client named, as far as it could be told; not to be trusted
};

// The number of bytes of a head that is complete in `text`, with its empty line; 0 when it isn't yet.
size_t headSize(std::string_view text);
// Whether `text`, a head that isn't complete, can't become a good one: a bare LF, a NUL, or too long.
bool isHopeless(std::string_view text);

// Of a whole head, with its empty line. Only CONNECT and absolute-form "http://" are requests to a proxy.
std::variant<Request, Malformed> parseRequest(std::string_view head);

// Follows the framing of a chunked body, strictly: no extensions, no trailers.
class ChunkedBody {
 public:
  // Takes from `bytes` what belongs to the body and returns how much that is; less than all only at the end or on an
  // error.
  size_t take(std::string_view bytes);
  bool ended() const { return state == State::Ended; }
  bool broken() const { return state == State::Broken; }

 private:
  enum class State { Size, SizeLf, Data, DataCr, DataLf, EndCr, EndLf, Ended, Broken };
  State step(char c);

  State state = State::Size;
  uint64_t left = 0;
  unsigned digits = 0;
};

}  // namespace oc::gateway
