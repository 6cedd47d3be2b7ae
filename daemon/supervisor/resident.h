// A provider that stays: restarted when it ends, slower each time, and given up loudly when it never lasts.
#pragma once

#include <kj/async.h>
#include <kj/function.h>

#include <random>

#include "supervisor.h"

namespace oc::supervisor {

struct RestartPolicy {
  kj::Duration first = 200 * kj::MILLISECONDS;  // before the first restart; doubled each time
  kj::Duration longest = 30 * kj::SECONDS;
  kj::Duration lasted = 60 * kj::SECONDS;  // an instance that lived so long begins the count anew
  unsigned attempts = 8;                   // in a row that did not last; then it is given up
};

class Resident final : private kj::TaskSet::ErrorHandler {
 public:
  enum class State { Starting, Running, Waiting, GivenUp };

  // `prepare` is done with each instance before it counts as running; when it breaks, the instance is ended and counts
  // as one that did not last.
  using Prepare = kj::Function<kj::Promise<void>(Instance&)>;
  Resident(Supervisor& supervisor, LaunchSpec spec, RestartPolicy policy = {}, kj::Maybe<Prepare> prepare = nullptr);

  State state() const { return now; }
  // Why it is not running, for status; empty while it is.
  const std::string& trouble() const { return lastTrouble; }
  unsigned failures() const { return count; }
  // The running instance, or nothing: callers fail with "try again".
  kj::Maybe<Instance&> current();
  // Resolves when it has been given up.
  kj::Promise<void> onGivenUp() { return givenUp.addBranch(); }
  // After the operator has mended something: count and wait begin anew.
  void retry();

 private:
  kj::Promise<void> run();
  kj::Promise<void> prepared();
  kj::Promise<void> untilEnd();
  kj::Promise<void> afterEnd(const std::string& why, bool lasted);
  kj::Duration delay();
  void taskFailed(kj::Exception&& exception) override;

  Supervisor& supervisor;
  LaunchSpec spec;
  RestartPolicy policy;
  kj::Maybe<Prepare> prepare;
  State now = State::Starting;
  std::string lastTrouble;
  unsigned count = 0;
  kj::Own<Instance> instance;
  std::mt19937 random;
  kj::PromiseFulfillerPair<void> givenUpPair = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> givenUp;
  kj::TaskSet tasks;
};

}  // namespace oc::supervisor
