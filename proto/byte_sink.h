// Both sides of a ByteSink (gateway.capnp): bytes in order, with so many under way that no wait for an answer is felt,
// and answers that do not stand in the way of what is waited for.
#pragma once

#include <gateway.capnp.h>
#include <kj/async-io.h>
#include <kj/refcount.h>
#include <kj/timer.h>

namespace oc::proto {

// The sending side.
class SinkWriter final : private kj::TaskSet::ErrorHandler {
 public:
  explicit SinkWriter(ByteSink::Client to) : to(kj::mv(to)), tasks(*this) {}

  // Sends a copy. Resolves when more may be sent: at once, until 256 KiB are unanswered. Breaks when an earlier one
  // could not be delivered.
  kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes);
  // No more will come. Resolves when the other side has all of it.
  kj::Promise<void> end();

 private:
  void answered(size_t size);
  void taskFailed(kj::Exception&& exception) override;

  ByteSink::Client to;
  size_t unanswered = 0;
  kj::Maybe<kj::Exception> failure;
  kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> waiting;  // for room
  kj::TaskSet tasks;
};

// Answers of many calls: those of a millisecond or two go out together. Whoever waits for an answer of another kind on
// the same connection is not held up by them, and a process in between wakes up once for all.
class RestingAnswers final : public kj::Refcounted {
 public:
  explicit RestingAnswers(kj::Timer& timer) : timer(timer), until(timer.now()) {}
  kj::Promise<void> next();

 private:
  kj::Timer& timer;
  kj::TimePoint until;
  kj::ForkedPromise<void> resting = kj::Promise<void>(kj::READY_NOW).fork();
};

// The receiving side's stream, one write after the other.
class OrderedWrites {
 public:
  // `bytes` must stay until the promise resolves, as a call's parameters do.
  kj::Promise<void> write(kj::AsyncOutputStream& stream, kj::ArrayPtr<const kj::byte> bytes);
  // All that was written before is.
  kj::Promise<void> all();
  // What is not written yet never is: nobody waits for it any more.
  void drop() { last = kj::Promise<void>(kj::READY_NOW).fork(); }

 private:
  kj::ForkedPromise<void> last = kj::Promise<void>(kj::READY_NOW).fork();
};

}  // namespace oc::proto
