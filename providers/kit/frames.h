// The Engine's framing of an attached container without a terminal: eight bytes before each piece of output, the first
// of which says the stream (1 standard output, 2 standard error), the last four its length, big-endian.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>

#include <cstdint>

namespace oc::kit {

// Takes bytes as they come and hands out what is inside the frames, without waiting for a frame's end.
class FrameReader {
 public:
  enum class Stream { Output, Errors };
  using Sink = kj::FunctionParam<void(Stream, kj::ArrayPtr<const kj::byte>)>;

  // Throws for a header that the Engine does not write: what follows could not be told apart any more.
  void feed(kj::ArrayPtr<const kj::byte> bytes, Sink sink);

 private:
  void takeHeader();

  kj::byte header[8];
  size_t headerSize = 0;
  uint32_t left = 0;  // of the frame that is being read
  Stream stream = Stream::Output;
};

// The sending half of an attached stream: destroying it ends the container's standard input.
kj::Own<kj::AsyncOutputStream> attachedInput(kj::AsyncIoStream& stream);

// An attached container's standard input and output as one stream, for RPC. What it writes to standard error goes to
// our log, line by line, printable and bounded. `stream` is after the Engine's answer to the attach.
kj::Own<kj::AsyncIoStream> framedStream(kj::Own<kj::AsyncIoStream> stream, kj::StringPtr name);

}  // namespace oc::kit
