#include "check.h"

#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include "task.h"

namespace oc::git {

namespace {

// Debian 12's. Before 2.38 git did not take safe.directory from where we give it.
constexpr int oldestMajor = 2, oldestMinor = 39;

class Check final : private Task {
 public:
  explicit Check(const Loop& loop) : Task(loop, "sandbox_unavailable") {}

  kj::Promise<OrRefusal<std::string>> run() {
    auto steps = kj::evalNow([this]() {
                   if (access("/usr/bin/git", X_OK) < 0)
                     refuse("git is not there: /usr/bin/git", "install it: apt-get install git");
                   GitCommand command;
                   command.arguments = {"version"};
                   command.gitDir = "/nonexistent";
                   return runGit(loop, kj::mv(command));
                 }).then([this](GitResult result) { return judge(result); });
    return orRefusal<std::string>(kj::mv(steps));
  }

 private:
  std::string judge(const GitResult& result) {
    if (!result.ok()) {
      refuse(fmt::format("git does not run locked down: {}", result.why()), "see the log; reinstall git");
    }
    auto line = shown(result.line());
    int major = 0, minor = 0;
    if (sscanf(line.c_str(), "git version %d.%d", &major, &minor) != 2) {
      refuse(fmt::format("git did not say its version but \"{}\"", line), "reinstall git");
    }
    if (major < oldestMajor || (major == oldestMajor && minor < oldestMinor)) {
      refuse(fmt::format("{} is too old", line), fmt::format("install git {}.{} or later", oldestMajor, oldestMinor));
    }
    return line;
  }
};

}  // namespace

kj::Promise<OrRefusal<std::string>> checkGit(const Loop& loop) {
  auto check = kj::heap<Check>(loop);
  auto promise = check->run();
  return promise.attach(kj::mv(check));
}

}  // namespace oc::git
