#include "handshake.h"

#include <kj/debug.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "base/text.h"

namespace oc {

namespace {

constexpr size_t maxFailure = 4000;

struct Reader {
  explicit Reader(kj::AsyncIoStream& stream) : stream(stream) {}
  kj::AsyncIoStream& stream;
  kj::byte buffer[maxFailure];
};

kj::Promise<Handshake> readFailure(Reader& reader, Handshake so_far) {
  return reader.stream.read(reader.buffer, 2, 2).then([&reader, so_far](size_t) mutable {
    uint16_t length;
    memcpy(&length, reader.buffer, 2);
    KJ_REQUIRE(length <= maxFailure, "an instance sent a failure that is too long", length);
    return reader.stream.read(reader.buffer, length, length).then([&reader, so_far, length](size_t) mutable {
      so_far.failure = printable({reinterpret_cast<char*>(reader.buffer), length});
      if (so_far.failure.empty()) so_far.failure = "it gave no reason";
      return so_far;
    });
  });
}

kj::Promise<Handshake> readVerdict(Reader& reader, Handshake so_far) {
  return reader.stream.read(reader.buffer, 1, 1).then([&reader, so_far](size_t) mutable -> kj::Promise<Handshake> {
    if (reader.buffer[0] == 'R') {
      so_far.ready = true;
      return so_far;
    }
    KJ_REQUIRE(reader.buffer[0] == 'F', "an instance said something that is no handshake");
    return readFailure(reader, so_far);
  });
}

}  // namespace

kj::Promise<Handshake> readHandshake(kj::AsyncIoStream& stream, kj::Function<void(pid_t)> onPid) {
  auto reader = kj::heap<Reader>(stream);
  auto& ref = *reader;
  return stream.read(ref.buffer, 1, 1)
      .then([&ref, onPid = kj::mv(onPid)](size_t) mutable -> kj::Promise<Handshake> {
        if (ref.buffer[0] == 'F') return readFailure(ref, {});
        KJ_REQUIRE(ref.buffer[0] == 'P', "an instance said something that is no handshake");
        return ref.stream.read(ref.buffer, 4, 4).then([&ref, onPid = kj::mv(onPid)](size_t) mutable {
          Handshake handshake;
          int32_t pid;
          memcpy(&pid, ref.buffer, 4);
          KJ_REQUIRE(pid > 1, "an instance named a pid that cannot be its", pid);
          handshake.pid = pid;
          onPid(pid);
          return readVerdict(ref, handshake);
        });
      })
      .attach(kj::mv(reader));
}

namespace kit {

void sayPid(int fd, pid_t pid) {
  char message[5] = {'P'};
  int32_t number = pid;
  memcpy(message + 1, &number, 4);
  writeAll(fd, {message, sizeof(message)});
}

void sayReady(int fd) { writeAll(fd, "R"); }

void sayFailure(int fd, const std::string& text) {
  auto bounded = shortened(text, maxFailure);
  uint16_t length = bounded.size();
  std::string message = "F";
  message.append(reinterpret_cast<const char*>(&length), 2);
  writeAll(fd, message + bounded);
}

}  // namespace kit
}  // namespace oc
