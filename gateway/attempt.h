// What is told of each attempt to get out.
#pragma once

#include <cstdint>
#include <string>

namespace oc::gateway {

// As NetworkRecord in proto/gateway.capnp.
struct Attempt {
  std::string host;
  uint16_t port = 0;
  bool allowed = false;
  std::string reason;
  std::string address;
  uint64_t bytesUp = 0, bytesDown = 0;
  int64_t startedAt = 0, endedAt = 0;
  uint32_t count = 1;
};

class Journal {
 public:
  virtual ~Journal() noexcept(false) {}
  virtual void note(Attempt attempt) = 0;
  // Too many are not told yet: nobody new is served until that changes.
  virtual bool isFull() const = 0;
};

}  // namespace oc::gateway
