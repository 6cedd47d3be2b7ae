#include "executor.h"

#include <kj/debug.h>

#include "shell.h"

namespace oc::run {

std::unique_ptr<Executor> makeExecutor(const std::string& name, const std::string& configJson) {
  (void)configJson;  // the shell job has no settings that concern its streams
  if (name == "shell") return std::make_unique<ShellExecutor>();
  KJ_FAIL_REQUIRE("this shim has no such executor", name.c_str());
}

}  // namespace oc::run
