#include "frames.h"

#include <kj/debug.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/log.h"
#include "base/text.h"

namespace oc::kit {

void FrameReader::takeHeader() {
  KJ_REQUIRE((header[0] == 1 || header[0] == 2) && header[1] == 0 && header[2] == 0 && header[3] == 0,
             "the container's stream is not framed as the Engine frames it");
  stream = header[0] == 1 ? Stream::Output : Stream::Errors;
  left = uint32_t(header[4]) << 24 | uint32_t(header[5]) << 16 | uint32_t(header[6]) << 8 | uint32_t(header[7]);
  headerSize = 0;
}

void FrameReader::feed(kj::ArrayPtr<const kj::byte> bytes, Sink sink) {
  while (bytes.size() > 0) {
    if (left == 0) {
      size_t take = std::min(sizeof(header) - headerSize, bytes.size());
      memcpy(header + headerSize, bytes.begin(), take);
      headerSize += take;
      bytes = bytes.slice(take, bytes.size());
      if (headerSize == sizeof(header)) takeHeader();
      continue;
    }
    size_t take = std::min<size_t>(left, bytes.size());
    sink(stream, bytes.slice(0, take));
    left -= take;
    bytes = bytes.slice(take, bytes.size());
  }
}

namespace {

class AttachedInput final : public kj::AsyncOutputStream {
 public:
  explicit AttachedInput(kj::AsyncIoStream& stream) : stream(stream) {}
  ~AttachedInput() noexcept(false) {
    try {
      stream.shutdownWrite();
    } catch (const kj::Exception&) {  // it is gone already
    }
  }

  kj::Promise<void> write(const void* buffer, size_t size) override { return stream.write(buffer, size); }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return stream.write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return stream.whenWriteDisconnected(); }

 private:
  kj::AsyncIoStream& stream;
};

class FramedStream final : public kj::AsyncIoStream {
 public:
  FramedStream(kj::Own<kj::AsyncIoStream> inner, kj::StringPtr name) : inner(kj::mv(inner)), name(name.cStr()) {}

  // Reads at most as many bytes as are asked for, frames included: so all that they hold has room.
  kj::Promise<size_t> tryRead(void* buffer, size_t minBytes, size_t maxBytes) override {
    return readSome(static_cast<kj::byte*>(buffer), minBytes, maxBytes, 0);
  }

  kj::Promise<void> write(const void* buffer, size_t size) override { return inner->write(buffer, size); }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner->whenWriteDisconnected(); }
  void shutdownWrite() override { inner->shutdownWrite(); }

 private:
  kj::Promise<size_t> readSome(kj::byte* to, size_t minBytes, size_t maxBytes, size_t done) {
    return inner->tryRead(raw, 1, std::min(sizeof(raw), maxBytes - done))
        .then([this, to, minBytes, maxBytes, done](size_t n) mutable -> kj::Promise<size_t> {
          if (n == 0) return done;
          frames.feed(kj::arrayPtr(raw, n), [&](FrameReader::Stream stream, kj::ArrayPtr<const kj::byte> bytes) {
            if (stream == FrameReader::Stream::Errors) return takeErrors(bytes);
            memcpy(to + done, bytes.begin(), bytes.size());
            done += bytes.size();
          });
          if (done >= minBytes) return done;
          return readSome(to, minBytes, maxBytes, done);
        });
  }

  // At most this much of its words is kept: they help whoever looks for a fault, and nobody else.
  void takeErrors(kj::ArrayPtr<const kj::byte> bytes) {
    constexpr size_t maxLine = 500, maxTotal = 16384;
    for (auto byte : bytes) {
      if (told >= maxTotal) return;
      if (byte != '\n' && line.size() < maxLine) {
        line.push_back(static_cast<char>(byte));
        continue;
      }
      logInfo("{}: {}", name, printable(line));
      told += line.size() + 1;
      line.clear();
    }
  }

  kj::Own<kj::AsyncIoStream> inner;
  std::string name;
  FrameReader frames;
  kj::byte raw[16384];
  std::string line;
  size_t told = 0;
};

}  // namespace

kj::Own<kj::AsyncOutputStream> attachedInput(kj::AsyncIoStream& stream) { return kj::heap<AttachedInput>(stream); }

kj::Own<kj::AsyncIoStream> framedStream(kj::Own<kj::AsyncIoStream> stream, kj::StringPtr name) {
  return kj::heap<FramedStream>(kj::mv(stream), name);
}

}  // namespace oc::kit
