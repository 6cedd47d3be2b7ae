#include "task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace oc::git {

void Task::refuse(std::string what, std::string fix) { refuse(Refusal{reason, std::move(what), std::move(fix)}); }

void Task::refuse(Refusal with) {
  refusal = std::move(with);
  kj::throwFatalException(KJ_EXCEPTION(FAILED, "refused"));
}

Refusal Task::explain(const kj::Exception& exception) const {
  KJ_IF_MAYBE (given, refusal) {
    return *given;
  }
  auto text = describe(exception);
  bool full = text.find("No space left") != std::string::npos || text.find("quota exceeded") != std::string::npos;
  return {reason, text, full ? "free some space on that disk, then try again" : "see the run's log"};
}

namespace {

kj::Promise<void> nextStep(kj::Timer& timer, kj::Function<bool()>& step) {
  // By the timer, since evalLater would run before any input is looked at.
  return timer.afterDelay(0 * kj::NANOSECONDS).then([&timer, &step]() -> kj::Promise<void> {
    if (step()) return kj::READY_NOW;
    return nextStep(timer, step);
  });
}

}  // namespace

kj::Promise<void> inSteps(kj::Timer& timer, kj::Function<bool()> step) {
  auto kept = kj::heap<kj::Function<bool()>>(kj::mv(step));
  auto& ref = *kept;
  return nextStep(timer, ref).attach(kj::mv(kept));
}

bool isObjectId(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) && text.find_first_not_of("0123456789abcdef") == std::string::npos &&
         !isZeroId(text);
}

bool isZeroId(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) && text.find_first_not_of('0') == std::string::npos;
}

kj::Promise<bool> isBranchName(const Loop& loop, std::string name) {
  constexpr size_t longest = 200;
  if (name.empty() || name.size() > longest || name[0] == '-' || name == "HEAD" || name == "@" ||
      hasControlCharacters(name))
    return false;
  GitCommand command;
  command.arguments = {"check-ref-format", "refs/heads/" + name};
  command.gitDir = "/nonexistent";  // it looks at none
  return runGit(loop, kj::mv(command)).then([](GitResult result) { return result.ok(); });
}

Refusal invalidBranch(const std::string& name) {
  return {"branch_invalid", fmt::format("\"{}\" is not a name that git takes for a branch", shown(name)),
          "give the binding's resource another branch, for example \"agent/{work}\""};
}

std::string shown(const std::string& text) { return shortened(printable(text), 500); }

}  // namespace oc::git
