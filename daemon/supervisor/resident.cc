#include "resident.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace oc::supervisor {

namespace {

// A secret may have to be asked for from a person's keyring.
constexpr auto prepareLimit = 120 * kj::SECONDS;

}  // namespace

Resident::Resident(Supervisor& supervisor, LaunchSpec spec, RestartPolicy policy, kj::Maybe<Prepare> prepareParam)
    : supervisor(supervisor),
      spec(kj::mv(spec)),
      policy(policy),
      prepare(kj::mv(prepareParam)),
      random(std::random_device{}()),
      givenUp(kj::mv(givenUpPair.promise).fork()),
      tasks(*this) {
  tasks.add(run());
}

kj::Maybe<Instance&> Resident::current() {
  if (now != State::Running) return nullptr;
  return *instance;
}

void Resident::retry() {
  if (now != State::GivenUp) return;
  count = 0;
  givenUpPair = kj::newPromiseAndFulfiller<void>();
  givenUp = kj::mv(givenUpPair.promise).fork();
  tasks.add(run());
}

kj::Promise<void> Resident::run() {
  now = State::Starting;
  return supervisor.start(spec)
      .then([this](kj::Own<Instance> started) {
        instance = kj::mv(started);
        return prepared();
      })
      .then([this]() { return untilEnd(); },
            [this](kj::Exception&& exception) {
              instance = nullptr;
              return afterEnd(describe(exception), false);
            });
}

// An instance that ends, or does not answer, while it is being prepared did not get there.
kj::Promise<void> Resident::prepared() {
  KJ_IF_MAYBE (step, prepare) {
    auto ended = instance->onEnd().then([](ProcessEnd) { fail("it ended while it was being prepared"); });
    return withDeadline(supervisor.timer(), prepareLimit, "open-conduit-" + spec.provider, (*step)(*instance))
        .exclusiveJoin(kj::mv(ended));
  }
  return kj::READY_NOW;
}

kj::Promise<void> Resident::untilEnd() {
  now = State::Running;
  lastTrouble.clear();
  auto since = supervisor.timer().now();
  return instance->onEnd().then([this, since](ProcessEnd end) {
    bool lasted = supervisor.timer().now() - since >= policy.lasted;
    auto why = instance->violation();
    if (why.empty()) why = fmt::format("it ended ({} {})", end.signaled ? "signal" : "exit code", end.code);
    instance = nullptr;
    return afterEnd(why, lasted);
  });
}

kj::Promise<void> Resident::afterEnd(const std::string& why, bool lasted) {
  count = lasted ? 1 : count + 1;
  lastTrouble = why;
  if (count >= policy.attempts) {
    now = State::GivenUp;
    logError("open-conduit-{} ({}) is given up after {} attempts: {}", spec.provider, spec.label, count, why);
    givenUpPair.fulfiller->fulfill();
    return kj::READY_NOW;
  }
  now = State::Waiting;
  logWarning("open-conduit-{} ({}) is started again: {}", spec.provider, spec.label, why);
  return supervisor.timer().afterDelay(delay()).then([this]() { return run(); });
}

// Doubled each time, and somewhere between half and the whole of that: many that fail together do not return together.
kj::Duration Resident::delay() {
  auto whole = policy.first * (1u << std::min(count - 1, 16u));
  if (whole > policy.longest) whole = policy.longest;
  std::uniform_int_distribution<int> percent(50, 100);
  return whole * percent(random) / 100;
}

void Resident::taskFailed(kj::Exception&& exception) {
  now = State::GivenUp;
  lastTrouble = describe(exception);
  logError("open-conduit-{} ({}): {}", spec.provider, spec.label, lastTrouble);
}

}  // namespace oc::supervisor
