#include "reaper.h"

#include <errno.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/log.h"
#include "proto/rpc.h"

namespace oc::kit {

namespace {

kj::UnixEventPort& capturing(kj::UnixEventPort& port) {
  kj::UnixEventPort::captureSignal(SIGCHLD);
  return port;
}

}  // namespace

Reaper::Reaper(kj::UnixEventPort& port) : port(capturing(port)), tasks(*this) { tasks.add(watch()); }

kj::Promise<ProcessEnd> Reaper::whenEnded(pid_t child) {
  auto pair = kj::newPromiseAndFulfiller<ProcessEnd>();
  known[child] = kj::mv(pair.fulfiller);
  return kj::mv(pair.promise);
}

kj::Promise<void> Reaper::whenChildless(kj::Function<void()> again) {
  auto pair = kj::newPromiseAndFulfiller<void>();
  waiting.push_back({kj::mv(pair.fulfiller), kj::mv(again)});
  reap();
  return kj::mv(pair.promise);
}

kj::Promise<void> Reaper::watch() {
  return port.onSignal(SIGCHLD).then([this](siginfo_t) {
    reap();
    return watch();
  });
}

void Reaper::reap() {
  bool some = false;
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0 && errno == ECHILD) {
      auto done = kj::mv(waiting);
      waiting.clear();
      for (auto& one : done) one.fulfiller->fulfill();
      return;
    }
    if (pid < 0) KJ_FAIL_SYSCALL("waitpid", errno);
    if (pid == 0) break;
    some = true;
    auto found = known.find(pid);
    if (found == known.end()) continue;
    ProcessEnd end;
    end.known = true;
    end.signaled = WIFSIGNALED(status);
    end.code = end.signaled ? WTERMSIG(status) : WEXITSTATUS(status);
    found->second->fulfill(kj::mv(end));
    known.erase(found);
  }
  if (some) {
    for (auto& one : waiting) one.again();
  }
}

void Reaper::taskFailed(kj::Exception&& exception) {
  // Without it nobody would learn of an end: better to end, and with us the whole tree.
  logError("children cannot be watched any more: {}", describe(exception));
  _exit(1);
}

}  // namespace oc::kit
