#include "start_bell.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

namespace oc::srt {

namespace {

kj::AutoCloseFd makeFifo(const std::string& path) {
  KJ_SYSCALL(mkfifo(path.c_str(), 0600), path);
  // For writing too: it never ends, and who opens it for writing does not wait.
  return openFile(path, O_RDWR | O_NONBLOCK);
}

}  // namespace

StartBell::StartBell(kj::UnixEventPort& port, std::string path)
    : path(kj::mv(path)),
      fd(makeFifo(this->path)),
      observer(port, fd.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ) {}

std::string StartBell::ring() const { return "echo > " + shellQuote(path) + "\n"; }

bool StartBell::hasRung() {
  char byte;
  if (!rung && read(fd.get(), &byte, 1) == 1) rung = true;
  return rung;
}

kj::Promise<void> StartBell::whenRung() {
  return observer.whenBecomesReadable().then([this]() { hasRung(); });
}

}  // namespace oc::srt
