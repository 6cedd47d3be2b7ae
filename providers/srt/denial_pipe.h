// What srt's proxy refuses, told by srt itself.
//
// srt keeps its refusals in a store that its library offers. A module that node loads before srt's own program listens
// to it and writes them to a pipe of its own: what an agent prints is never mistaken for one.
#pragma once

#include <kj/async-unix.h>
#include <kj/io.h>

#include <string>

#include "base/fd.h"
#include "providers/kit/denials.h"

namespace oc::srt {

// srt's own number of the pipe's end. Node makes it close on exec, so the sandbox has none of it.
constexpr int denialDescriptor = 3;

// The module, as a URL for node's --import; `cli` is srt's program. It changes nothing of what srt does: where it
// fails, it says so on the pipe, and srt runs.
std::string tellDenials(const std::string& cli);

// A line is `host`, HOST:PORT and srt's reason, with tabs between them, or `!` and why there will be none.
class DenialPipe {
 public:
  DenialPipe(kj::UnixEventPort& port, kit::DenialList& list) : DenialPipe(port, list, makePipe()) {}

  // The end that srt writes to: to be asked for once. It is closed with what is returned.
  kj::AutoCloseFd forSrt() { return kj::mv(writeEnd); }
  // When srt has ended: all that it has said.
  void readWhatIsThere();

 private:
  DenialPipe(kj::UnixEventPort& port, kit::DenialList& list, FdPair ends);
  kj::Promise<void> readOn();
  void take(const std::string& line);

  kit::DenialList& list;
  kj::AutoCloseFd readEnd, writeEnd;
  kj::UnixEventPort::FdObserver observer;
  std::string partial;
  bool ended = false;
  kj::Promise<void> reading;
};

}  // namespace oc::srt
