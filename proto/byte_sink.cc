#include "byte_sink.h"

namespace oc::proto {

namespace {

constexpr size_t mostUnanswered = 256u << 10;
constexpr auto rest = 1 * kj::MILLISECONDS;

}  // namespace

kj::Promise<void> SinkWriter::write(kj::ArrayPtr<const kj::byte> bytes) {
  auto request = to.writeRequest();
  request.setBytes(bytes);
  auto size = bytes.size();
  unanswered += size;
  tasks.add(request.send().ignoreResult().then([this, size]() { answered(size); }));
  KJ_IF_MAYBE (exception, failure) return kj::cp(*exception);
  if (unanswered < mostUnanswered) return kj::READY_NOW;
  auto room = kj::newPromiseAndFulfiller<void>();
  waiting = kj::mv(room.fulfiller);
  return kj::mv(room.promise);
}

kj::Promise<void> SinkWriter::end() { return to.endRequest().send().ignoreResult(); }

void SinkWriter::answered(size_t size) {
  unanswered -= size;
  if (unanswered >= mostUnanswered) return;
  KJ_IF_MAYBE (fulfiller, waiting) {
    (*fulfiller)->fulfill();
    waiting = nullptr;
  }
}

void SinkWriter::taskFailed(kj::Exception&& exception) {
  KJ_IF_MAYBE (fulfiller, waiting) {
    (*fulfiller)->reject(kj::cp(exception));
    waiting = nullptr;
  }
  if (failure == nullptr) failure = kj::mv(exception);
}

kj::Promise<void> RestingAnswers::next() {
  // By the clock: a promise that forgot itself at its end would be destroyed while it runs, if nobody waits for it.
  if (timer.now() >= until) {
    until = timer.now() + rest;
    resting = timer.afterDelay(rest).fork();
  }
  return resting.addBranch();
}

kj::Promise<void> OrderedWrites::write(kj::AsyncOutputStream& stream, kj::ArrayPtr<const kj::byte> bytes) {
  last = last.addBranch().then([&stream, bytes]() { return stream.write(bytes.begin(), bytes.size()); }).fork();
  return last.addBranch();
}

kj::Promise<void> OrderedWrites::all() { return last.addBranch(); }

}  // namespace oc::proto
