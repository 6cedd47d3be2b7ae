// Lines over a stream whose other end is an agent: bounded in both directions.
#pragma once

#include <kj/async-io.h>

#include <string>
#include <vector>

namespace oc::run {

class LineReader {
 public:
  explicit LineReader(kj::AsyncInputStream& from) : from(from) {}

  struct Line {
    std::string text;      // without its end
    bool tooLong = false;  // it had more than `limit` bytes, and the rest of it is passed over
  };
  // The next line; nothing at the stream's end, where an unfinished line does not count. One at a time. Breaks when
  // the stream does. Keeps at most `limit` and a buffer of 64 KiB.
  kj::Promise<kj::Maybe<Line>> next(size_t limit);

 private:
  kj::Maybe<Line> take(size_t limit);

  kj::AsyncInputStream& from;
  std::string pending;           // what was read and not given yet
  size_t begin = 0, looked = 0;  // of `pending`: where the next line begins, and how far there is no end of it
  bool skipping = false;         // the rest of a line that was too long
  kj::byte buffer[65536];
};

class LineWriter {
 public:
  explicit LineWriter(kj::AsyncOutputStream& to) : to(to) {}

  void send(const std::string& line);
  // What the other side has not taken yet, in bytes.
  size_t queued() const { return waiting.size() + writing.size(); }
  // Whether the other side keeps up: at most 256 KiB are queued. Else, when it does again.
  bool hasRoom() const { return queued() <= (256u << 10); }
  kj::Promise<void> whenRoom();
  // Resolves when all has been taken.
  kj::Promise<void> whenTaken();
  // Writes as long as the stream takes it; never resolves, and breaks when the stream does.
  kj::Promise<void> run();

 private:
  using Waiters = std::vector<kj::Own<kj::PromiseFulfiller<void>>>;
  static kj::Promise<void> wait(Waiters& waiters);
  static void tell(Waiters& waiters);

  kj::AsyncOutputStream& to;
  std::string waiting, writing;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> wake;
  Waiters forRoom, forAll;
};

}  // namespace oc::run
