#include "shim_peer.h"

#include <algorithm>

namespace oc {

namespace {

constexpr double burst = 4u << 20;
constexpr double bytesPerSecond = 1u << 20;
constexpr double smallest = 64u << 10;  // who waited reads at least so much at once

class PacedStream final : public kj::AsyncIoStream {
 public:
  PacedStream(kj::Own<kj::AsyncIoStream> inner, kj::Timer& timer)
      : inner(kj::mv(inner)), timer(timer), counted(timer.now()) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override {
    refill();
    if (allowed > 0) return readNow(buffer, minBytes, maxBytes);
    auto wait = (smallest - allowed) / bytesPerSecond;
    return timer.afterDelay(static_cast<int64_t>(wait * 1e6) * kj::MICROSECONDS)
        .then([this, buffer, minBytes, maxBytes]() { return tryRead(buffer, minBytes, maxBytes); });
  }
  kj::Promise<void> write(const void* buffer, size_t size) override { return inner->write(buffer, size); }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner->whenWriteDisconnected(); }
  void shutdownWrite() override { inner->shutdownWrite(); }
  void abortRead() override { inner->abortRead(); }

 private:
  // The timer stands still within a turn of the loop, and so does this.
  void refill() {
    auto now = timer.now();
    allowed = std::min(burst, allowed + static_cast<double>((now - counted) / kj::NANOSECONDS) / 1e9 * bytesPerSecond);
    counted = now;
  }

  kj::Promise<size_t> readNow(void* buffer, size_t minBytes, size_t maxBytes) {
    return inner->tryRead(buffer, minBytes, maxBytes).then([this](size_t n) {
      allowed -= static_cast<double>(n);
      return n;
    });
  }

  kj::Own<kj::AsyncIoStream> inner;
  kj::Timer& timer;
  double allowed = burst;
  kj::TimePoint counted;
};

}  // namespace

RpcLimits shimLimits() {
  RpcLimits limits;
  limits.messageWords = (512u << 10) / 8;
  limits.flowWords = (2u << 20) / 8;
  limits.totalBytes = 0;
  return limits;
}

kj::Own<kj::AsyncIoStream> paced(kj::Own<kj::AsyncIoStream> stream, kj::Timer& timer) {
  return kj::heap<PacedStream>(kj::mv(stream), timer);
}

}  // namespace oc
