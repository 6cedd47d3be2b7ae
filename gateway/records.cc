#include "records.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "proto/rpc.h"

namespace oc::gateway {

namespace {

constexpr unsigned mostUnacknowledged = 32;
// Beyond it nobody new is served: every attempt is told, so a shim that is slow slows the run.
constexpr size_t mostQueued = 1024;
constexpr size_t mostAlike = 256;
constexpr int64_t alikeMilliseconds = 1000;
constexpr size_t mostHostBytes = 253;
// What has ended is told a little later: whoever opens connections one after the other waits for the next one then, and
// for no message of ours.
constexpr int64_t restMilliseconds = 5;
constexpr size_t mostResting = 64;

}  // namespace

Records::Records(Loop& loop, proto::GatewayHost::Client host, std::function<void()> roomAgain)
    : host(kj::mv(host)),
      roomAgain(std::move(roomAgain)),
      second(loop, [this]() { flushRefusals(); }),
      rest(loop, [this]() { endRest(); }),
      tasks(*this) {}

bool Records::isFull() const { return queue.size() >= mostQueued; }

void Records::note(Attempt attempt) {
  attempt.host = shortened(printable(attempt.host), mostHostBytes);
  if (attempt.allowed) return enqueue(std::move(attempt));
  // An agent that tries the same again and again is told of once a second.
  Alike alike{attempt.host, attempt.port, attempt.reason};
  auto found = refusals.find(alike);
  if (found != refusals.end()) {
    ++found->second.count;
    found->second.endedAt = attempt.endedAt;
    return;
  }
  if (refusals.size() >= mostAlike) flushRefusals();
  refusals.emplace(std::move(alike), std::move(attempt));
  if (!second.isRunning()) second.start(alikeMilliseconds);
}

void Records::flushRefusals() {
  second.stop();
  std::map<Alike, Attempt> told;
  told.swap(refusals);
  for (auto& [alike, attempt] : told) enqueue(std::move(attempt));
}

kj::Promise<void> Records::toldSoFar() {
  flushRefusals();
  endRest();
  if (queue.empty()) return kj::READY_NOW;
  auto told = kj::newPromiseAndFulfiller<void>();
  waiting.emplace(queued, kj::mv(told.fulfiller));
  return kj::mv(told.promise);
}

void Records::enqueue(Attempt attempt) {
  queue.push_back(std::move(attempt));
  ++queued;
  if (queue.size() >= mostResting) return endRest();
  if (!rest.isRunning()) rest.start(restMilliseconds);
}

void Records::endRest() {
  rest.stop();
  sendSome();
}

void Records::sendSome() {
  bool wasFull = isFull();
  while (!queue.empty() && unacknowledged < mostUnacknowledged) {
    ++unacknowledged;
    ++sent;
    send(queue.front());
    queue.pop_front();
  }
  for (auto first = waiting.begin(); first != waiting.end() && first->first <= sent; first = waiting.erase(first)) {
    first->second->fulfill();
  }
  if (wasFull && !isFull()) roomAgain();
}

void Records::send(const Attempt& attempt) {
  auto request = host.connectionRequest();
  auto record = request.initRecord();
  record.setHost(attempt.host.c_str());
  record.setPort(attempt.port);
  record.setAllowed(attempt.allowed);
  record.setReason(attempt.reason.c_str());
  record.setAddress(attempt.address.c_str());
  record.setBytesUp(attempt.bytesUp);
  record.setBytesDown(attempt.bytesDown);
  record.setStartedAt(attempt.startedAt);
  record.setEndedAt(attempt.endedAt);
  record.setCount(attempt.count);
  tasks.add(request.send().ignoreResult().then(
      [this]() {
        --unacknowledged;
        sendSome();
      },
      [this](kj::Exception&& exception) {
        // It was said; who is told keeps it or not. When the channel is gone, so are we.
        bool gone = exception.getType() == kj::Exception::Type::DISCONNECTED;
        if (!gone) logWarning("a connection could not be told: {}", describe(exception));
        --unacknowledged;
        sendSome();
      }));
}

void Records::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

}  // namespace oc::gateway
