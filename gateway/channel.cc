#include "channel.h"

#include <unistd.h>

namespace oc::gateway {

namespace {

class StandardStream final : public kj::AsyncIoStream {
 public:
  StandardStream(kj::Own<kj::AsyncInputStream> input, kj::Own<kj::AsyncOutputStream> output)
      : input(kj::mv(input)), output(kj::mv(output)) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override {
    return input->tryRead(buffer, minBytes, maxBytes);
  }
  kj::Promise<void> write(const void* buffer, size_t size) override { return output->write(buffer, size); }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return output->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return output->whenWriteDisconnected(); }
  // The process ends right behind it, and the descriptor with it.
  void shutdownWrite() override {}

 private:
  kj::Own<kj::AsyncInputStream> input;
  kj::Own<kj::AsyncOutputStream> output;
};

}  // namespace

kj::Own<kj::AsyncIoStream> standardStream(kj::LowLevelAsyncIoProvider& io) {
  return kj::heap<StandardStream>(io.wrapInputFd(STDIN_FILENO), io.wrapOutputFd(STDOUT_FILENO));
}

kj::Promise<void> drive(Loop& loop, kj::UnixEventPort::FdObserver& observer) {
  return observer.whenBecomesReadable().then([&loop, &observer]() {
    loop.turn(0);
    return drive(loop, observer);
  });
}

}  // namespace oc::gateway
