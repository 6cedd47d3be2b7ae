// The person's terminal, lent to a program elsewhere.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <termios.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace oc::cli {

struct TerminalSize {
  uint16_t columns = 0, rows = 0;
};
TerminalSize terminalSize(int fd);

// A terminal that passes on every key as it is, from its making to its end.
class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  ~RawTerminal() { leave(); }
  KJ_DISALLOW_COPY(RawTerminal);

  void enter();
  // As it was before. Also shows the cursor and turns off what a program that was cut off may have left on: mouse,
  // bracketed paste, colours.
  void leave();

 private:
  int fd;
  struct termios before;
  bool raw = false;
};

// Ctrl-P Ctrl-Q, as it comes in pieces. What is not part of it comes out as it went in.
class DetachKey {
 public:
  // What is to be passed on. After the key has been seen, nothing more is.
  std::string pass(std::string_view typed);
  bool seen() const { return found; }

 private:
  bool begun = false, found = false;
};

// How a session ended here.
enum class SessionEnd { StreamEnded, Detached, TerminalLost, Signal };

// Carries bytes between the terminal on descriptors 0 and 1 and a stream, both ways, until one of them ends or a signal
// comes.
class TerminalSession final : private kj::TaskSet::ErrorHandler {
 public:
  // `onResize` is told of each new size, and once at the beginning; the next is told when its promise has resolved.
  TerminalSession(kj::AsyncIoContext& io, kj::Own<kj::AsyncIoStream> stream,
                  kj::Function<kj::Promise<void>(TerminalSize)> onResize);

  // Before `run`. From then on they no longer end the process.
  static void captureSignals();

  // Resolves with the terminal as it was before.
  kj::Promise<SessionEnd> run();
  // Of SessionEnd::Signal.
  int signal() const { return signalNumber; }

 private:
  kj::Promise<void> show();
  kj::Promise<void> type();
  kj::Promise<void> watchSize();
  kj::Promise<void> watchStop();
  kj::Promise<void> watchContinue();
  kj::Promise<void> watchEnd(int number);
  kj::Promise<void> tellSize();
  void finish(SessionEnd end);
  void taskFailed(kj::Exception&& exception) override;

  kj::AsyncIoContext& io;
  kj::Own<kj::AsyncIoStream> stream;
  kj::Function<kj::Promise<void>(TerminalSize)> onResize;
  RawTerminal terminal;
  kj::UnixEventPort::FdObserver input;
  DetachKey key;
  int signalNumber = 0;
  char shown[65536];
  kj::PromiseFulfillerPair<SessionEnd> ended = kj::newPromiseAndFulfiller<SessionEnd>();
  kj::TaskSet tasks;
};

}  // namespace oc::cli
