#include "terminal.h"

#include <errno.h>
#include <kj/debug.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <initializer_list>

namespace oc::cli {

namespace {

constexpr char ctrlP = 0x10, ctrlQ = 0x11;
constexpr auto betweenSizes = 50 * kj::MILLISECONDS;
constexpr int endings[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
// Cursor on; mouse, focus reports and bracketed paste off; colours as usual.
constexpr std::string_view calm = "\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[0m";

bool hasInput(int fd) {
  struct pollfd asked = {fd, POLLIN, 0};
  return poll(&asked, 1, 0) == 1;
}

// A terminal takes it in its own time. False: it is gone.
bool writeWhole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      struct pollfd asked = {fd, POLLOUT, 0};
      poll(&asked, 1, -1);
      continue;
    }
    if (n <= 0) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

}  // namespace

TerminalSize terminalSize(int fd) {
  struct winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) < 0) return {};
  return {size.ws_col, size.ws_row};
}

// ---- the terminal's mode

RawTerminal::RawTerminal(int fd) : fd(fd) { KJ_SYSCALL(tcgetattr(fd, &before)); }

void RawTerminal::enter() {
  auto mode = before;
  cfmakeraw(&mode);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  KJ_SYSCALL(tcsetattr(fd, TCSADRAIN, &mode));
  raw = true;
}

void RawTerminal::leave() {
  if (!raw) return;
  raw = false;
  writeWhole(STDOUT_FILENO, calm);
  // TCSANOW: a terminal that is gone or stopped would be waited for.
  tcsetattr(fd, TCSANOW, &before);
}

std::string DetachKey::pass(std::string_view typed) {
  std::string result;
  for (char c : typed) {
    if (found) break;
    if (begun && c == ctrlQ) {
      found = true;
      break;
    }
    if (begun) result += ctrlP;
    begun = c == ctrlP;
    if (!begun) result += c;
  }
  return result;
}

// ---- the session

TerminalSession::TerminalSession(kj::AsyncIoContext& io, kj::Own<kj::AsyncIoStream> stream,
                                 kj::Function<kj::Promise<void>(TerminalSize)> onResize)
    : io(io),
      stream(kj::mv(stream)),
      onResize(kj::mv(onResize)),
      terminal(STDIN_FILENO),
      input(io.unixEventPort, STDIN_FILENO, kj::UnixEventPort::FdObserver::OBSERVE_READ),
      tasks(*this) {}

void TerminalSession::captureSignals() {
  for (int number : endings) kj::UnixEventPort::captureSignal(number);
  for (int number : {SIGWINCH, SIGTSTP, SIGCONT}) kj::UnixEventPort::captureSignal(number);
}

kj::Promise<SessionEnd> TerminalSession::run() {
  terminal.enter();
  tasks.add(show());
  tasks.add(type());
  tasks.add(tellSize().then([this]() { return watchSize(); }));
  tasks.add(watchStop());
  tasks.add(watchContinue());
  for (int number : endings) tasks.add(watchEnd(number));
  return kj::mv(ended.promise).then([this](SessionEnd end) {
    terminal.leave();
    return end;
  });
}

kj::Promise<void> TerminalSession::show() {
  return stream->tryRead(shown, 1, sizeof(shown))
      .then(
          [this](size_t n) -> kj::Promise<void> {
            if (n == 0) {
              finish(SessionEnd::StreamEnded);
              return kj::READY_NOW;
            }
            if (!writeWhole(STDOUT_FILENO, {shown, n})) {
              finish(SessionEnd::TerminalLost);
              return kj::READY_NOW;
            }
            // KJ looks for keys and signals only when nothing is left to do, which output without end never lets
            // happen; for a timer it looks.
            return io.provider->getTimer().afterDelay(0 * kj::NANOSECONDS).then([this]() { return show(); });
          },
          [this](kj::Exception&&) { finish(SessionEnd::StreamEnded); });
}

// The descriptor stays as it is: our parent has it too, and would find it non-blocking.
kj::Promise<void> TerminalSession::type() {
  auto readable = hasInput(STDIN_FILENO) ? kj::Promise<void>(kj::READY_NOW) : input.whenBecomesReadable();
  return readable.then([this]() -> kj::Promise<void> {
    if (!hasInput(STDIN_FILENO)) return type();
    char typed[4096];
    ssize_t n = ::read(STDIN_FILENO, typed, sizeof(typed));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return type();
    if (n <= 0) {
      finish(SessionEnd::TerminalLost);
      return kj::READY_NOW;
    }
    auto bytes = kj::heap<std::string>(key.pass({typed, static_cast<size_t>(n)}));
    auto written = bytes->empty() ? kj::Promise<void>(kj::READY_NOW) : stream->write(bytes->data(), bytes->size());
    return written.attach(kj::mv(bytes)).then([this]() -> kj::Promise<void> {
      if (!key.seen()) return type();
      finish(SessionEnd::Detached);
      return kj::READY_NOW;
    });
  });
}

kj::Promise<void> TerminalSession::tellSize() {
  return onResize(terminalSize(STDIN_FILENO)).catch_([](kj::Exception&&) {});
}

// Dragging a window says it a hundred times a second.
kj::Promise<void> TerminalSession::watchSize() {
  return io.unixEventPort.onSignal(SIGWINCH).then([this](siginfo_t) {
    auto told = io.provider->getTimer().afterDelay(betweenSizes).then([this]() { return tellSize(); });
    return told.then([this]() { return watchSize(); });
  });
}

// Ctrl-Z is the program's; but another process may stop us, whose terminal it then is.
kj::Promise<void> TerminalSession::watchStop() {
  return io.unixEventPort.onSignal(SIGTSTP).then([this](siginfo_t) {
    terminal.leave();
    raise(SIGSTOP);
    terminal.enter();
    return tellSize().then([this]() { return watchStop(); });
  });
}

// SIGSTOP is not told; a shell then takes its terminal back by itself.
kj::Promise<void> TerminalSession::watchContinue() {
  return io.unixEventPort.onSignal(SIGCONT).then([this](siginfo_t) {
    terminal.enter();
    return tellSize().then([this]() { return watchContinue(); });
  });
}

kj::Promise<void> TerminalSession::watchEnd(int number) {
  return io.unixEventPort.onSignal(number).then([this, number](siginfo_t) {
    signalNumber = number;
    finish(SessionEnd::Signal);
  });
}

void TerminalSession::finish(SessionEnd end) { ended.fulfiller->fulfill(kj::mv(end)); }

// A stream that cannot be written to has ended.
void TerminalSession::taskFailed(kj::Exception&&) { finish(SessionEnd::StreamEnded); }

}  // namespace oc::cli
