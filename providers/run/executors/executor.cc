#include "executor.h"

#include <kj/debug.h>

#include "claude_code.h"
#include "shell.h"

namespace oc::run {

kj::Promise<Delivery> Executor::inject(const std::string&, const std::string&) {
  return Delivery{false, "its executor takes no messages while it runs"};
}

Verdict Executor::finished(const ProcessEnd&, RunLog&) { return {}; }

std::unique_ptr<Executor> makeExecutor(const std::string& name, const std::string& configJson, ExecutorHost& host) {
  if (name == "shell") return std::make_unique<ShellExecutor>(host);
  if (name == "claude-code") return std::make_unique<ClaudeCodeExecutor>(configJson, host);
  KJ_FAIL_REQUIRE("this shim has no such executor", name.c_str());
}

}  // namespace oc::run
