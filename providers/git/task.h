// What the tasks have in common: a list of steps, any of which may refuse, and one answer at the end.
#pragma once

#include <kj/async.h>
#include <kj/debug.h>

#include <string>
#include <utility>

#include "base/refusal.h"
#include "git_command.h"
#include "proto/rpc.h"

namespace oc::git {

class Task {
 protected:
  // `reason` is what a failure without a word of its own is refused with: a full disk, a git that fails.
  Task(const Loop& loop, std::string reason) : loop(loop), reason(std::move(reason)) {}

  // Ends the steps: the task's answer is this refusal.
  [[noreturn]] void refuse(std::string what, std::string fix);
  [[noreturn]] void refuse(Refusal with);

  // The value of another task, or its refusal as ours.
  template <typename T>
  T accept(OrRefusal<T> answer) {
    if (!answer.ok()) refuse(answer.refusal());
    return std::move(answer).value();
  }

  // What a step that failed is told as.
  Refusal explain(const kj::Exception& exception) const;

  template <typename T>
  kj::Promise<OrRefusal<T>> orRefusal(kj::Promise<T> steps) {
    return steps.then([](T value) { return OrRefusal<T>(std::move(value)); },
                      [this](kj::Exception&& exception) -> OrRefusal<T> { return explain(exception); });
  }

  Loop loop;

 private:
  std::string reason;
  kj::Maybe<Refusal> refusal;
};

// Calls `step` until it says true (done), and lets the loop do other things in between.
kj::Promise<void> inSteps(kj::Timer& timer, kj::Function<bool()> step);

// A commit id of SHA-1 or SHA-256, in lower case.
bool isObjectId(const std::string& text);
// 40 or 64 zeros: no commit.
bool isZeroId(const std::string& text);

// Is it a branch's name? By git's own rules (git check-ref-format), besides that it does not start with "-" and has at
// most 200 bytes, so that "NAME.lock" is a file name wherever it is kept.
kj::Promise<bool> isBranchName(const Loop& loop, std::string name);
Refusal invalidBranch(const std::string& name);

// For sentences: bounded and printable.
std::string shown(const std::string& text);

}  // namespace oc::git
