// A shell job: its output is its log, byte for byte.
#include "shell.h"

namespace oc::run {

void ShellExecutor::start(std::string brief) {
  host.write(std::move(brief));
  host.closeInput();
}

void ShellExecutor::received(Stream, kj::ArrayPtr<const kj::byte> bytes, RunLog& log) { log.append(bytes); }

}  // namespace oc::run
