// Tells that the agent's script has begun, inside the sandbox. A FIFO can be written to on a read-only mount.
#pragma once

#include <kj/async-unix.h>
#include <kj/io.h>

#include <string>

namespace oc::srt {

class StartBell {
 public:
  // Makes a FIFO at the path.
  StartBell(kj::UnixEventPort& port, std::string path);

  // A line of shell that rings it.
  std::string ring() const;
  bool hasRung();
  // Once.
  kj::Promise<void> whenRung();

 private:
  std::string path;
  kj::AutoCloseFd fd;
  kj::UnixEventPort::FdObserver observer;
  bool rung = false;
};

}  // namespace oc::srt
