// open-conduit: what a person types.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/standard_descriptors.h"
#include "program.h"

namespace {

// Ctrl-C was caught to say what goes on without us; our parent shall see that it ended us all the same.
[[noreturn]] void endByInterrupt() {
  signal(SIGINT, SIG_DFL);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(SIG_UNBLOCK, &interrupt, nullptr);
  raise(SIGINT);
  _exit(oc::cli::interruptedCode);
}

}  // namespace

int main(int argc, char** argv) {
  oc::fillStandardDescriptors();
  int code;
  try {
    auto world = oc::cli::makeRealWorld();
    code = oc::cli::runProgram({argv + 1, argv + argc}, *world);
  } catch (const kj::Exception& exception) {
    fprintf(stderr, "open-conduit: %s\n", oc::describe(exception).c_str());
    return 1;
  }
  if (code == oc::cli::interruptedCode) endByInterrupt();
  return code;
}
