// What an instance says on descriptor 3 before RPC, and what its starter reads. Few bytes of fixed form, since the
// reader is the daemon.
//
//   'P' pid:int32     the process that will serve, in its starter's pid namespace (it may be a child of the one
//                     that was spawned, which then ends with 0)
//   'R'               locked down; the next byte is RPC
//   'F' length:uint16 text    it cannot start, and why (at most 4,000 bytes); it ends with 1
#pragma once

#include <kj/async-io.h>
#include <sys/types.h>

#include <string>

namespace oc {

struct Handshake {
  pid_t pid = 0;
  bool ready = false;
  std::string failure;  // printable; set when not ready
};

// Reads 'P' and hands the pid to `onPid` at once, then 'R' or 'F'. A peer that says anything else, or goes away, is a
// failure.
kj::Promise<Handshake> readHandshake(kj::AsyncIoStream& stream, kj::Function<void(pid_t)> onPid);

namespace kit {
void sayPid(int fd, pid_t pid);
void sayReady(int fd);
void sayFailure(int fd, const std::string& text);
}  // namespace kit
}  // namespace oc
