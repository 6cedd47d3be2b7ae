// One direction of a connection: bytes from one descriptor to another by splice(2), so that they are not copied through
// the process, and what is not written yet waits in the kernel.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "request.h"

namespace oc::gateway {

// A descriptor with what epoll said of it last.
struct End {
  kj::AutoCloseFd fd;
  bool readable = false;
  bool writable = false;

  void note(uint32_t events);
};

// At most so many pipes. Empty ones are kept for the next who needs one: making one takes longer than moving a few
// kilobytes.
class PipePool {
 public:
  explicit PipePool(size_t most) : most(most) {}
  struct Pipe {
    kj::AutoCloseFd out, in;  // out: read from it
  };
  // Null when as many as there may be hold something, or there are no descriptors.
  std::unique_ptr<Pipe> take();
  // Only an empty one.
  void giveBack(std::unique_ptr<Pipe> pipe);
  // One that is of no more use.
  void drop(std::unique_ptr<Pipe> pipe);

 private:
  size_t most, made = 0;
  std::vector<std::unique_ptr<Pipe>> spare;
};

class Pump {
 public:
  enum class State {
    Open,    // there may be more
    Ended,   // the source ended, or all that it may say has been said, and everything is written
    Failed,  // reading or writing failed, or the source broke its framing
  };
  enum class Progress { Waits, Unfinished };

  explicit Pump(PipePool& pool) : pool(pool) {}
  ~Pump();
  KJ_DISALLOW_COPY(Pump);

  // Goes out before anything of the source does.
  void prepend(std::string bytes);
  // The source says this much more, however long its stream is.
  void limit(uint64_t bytes) { left = bytes; }
  // The source says one chunked body.
  void expectChunks() { chunks = std::make_unique<ChunkedBody>(); }
  // As if the source had said these: what was read with a head.
  void feed(std::string_view bytes);

  // Moves what goes without waiting. Unfinished: more would go, but others have to get their turn.
  Progress run(End& from, End& to);
  State state() const { return current; }
  // Whether it failed because the source didn't keep to what it announced.
  bool violated() const { return broken; }
  // Whether the source's stream is at its end (and not only what it may say).
  bool sawEnd() const { return end; }
  // What came from the source and was written; the prepended not counted.
  uint64_t moved() const { return total; }

 private:
  bool write(End& to);
  bool fill(End& from);
  bool fillByCopying(End& from, size_t most);
  bool fail();
  void finish();

  PipePool& pool;
  std::unique_ptr<PipePool::Pipe> pipe;
  std::string pending;   // to write first
  size_t at = 0;         // of it, written
  size_t uncounted = 0;  // of it, prepended
  size_t held = 0;       // in the pipe
  std::optional<uint64_t> left;
  std::unique_ptr<ChunkedBody> chunks;
  uint64_t total = 0;
  bool end = false, broken = false;
  State current = State::Open;
};

}  // namespace oc::gateway
