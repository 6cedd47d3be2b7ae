// The command that a container is for, and everything that it starts.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "gateway/loop.h"
#include "secrets.h"
#include "start_file.h"

namespace oc::gateway {

// All signals that are passed on, and SIGCHLD, as a descriptor; they are blocked from then on.
kj::AutoCloseFd takeSignals();

class Child final : private Watcher {
 public:
  // What is started, and what it gets besides this process's environment: a later one's variables replace an earlier
  // one's.
  struct Image {
    const std::vector<std::string>& command;
    const StartFile* start = nullptr;  // its variables
    const Secrets* secrets = nullptr;
  };
  // Starts it in a session of its own, or, where standard input
  // is a terminal, in its foreground. There no shell is above it: one that stops, by Ctrl-Z for example, is made to go
  // on. Throws when there can be no process; a command that can't be executed ends with 126 or 127.
  Child(Loop& loop, int signals, const Image& image);
  ~Child();

  bool ended() const { return over; }
  int exitCode() const { return code; }

 private:
  void ready(uint32_t events) override;
  void reap();
  void bringBack();

  Loop& loop;
  int signals;
  bool terminal;
  pid_t pid = -1;
  bool over = false;
  int code = 0;
};

// As the first process of a pid namespace only: kills all others and waits until none is left.
void endAllOthers();

}  // namespace oc::gateway
