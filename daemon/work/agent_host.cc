// What the daemon offers to a run's shim.
#include "agent_parts.h"
#include <kj/debug.h>

#include "base/log.h"
#include "base/pace.h"
#include "base/text.h"
#include "proto/convert.h"

namespace oc::work {

namespace {

state::Usage read(proto::RunEvent::Usage::Reader from) {
  return {from.getInputTokens(),      from.getOutputTokens(), from.getCacheReadTokens(),
          from.getCacheWriteTokens(), from.getCostMicroUsd(), from.getTurns()};
}

state::NetworkTotals read(proto::NetworkTotals::Reader from) {
  return {from.getAllowed(), from.getDenied(), from.getBytesUp(), from.getBytesDown()};
}

// What the daemon offers to a shim. The listener writes to the database before it returns.
class HostServer final : public proto::RunHost::Server {
 public:
  HostServer(kj::Own<EventDoor> door, kj::Timer& timer) : door(kj::mv(door)), pace(timer, mostAtOnce, perSecond) {}

  kj::Promise<void> event(EventContext context) override {
    KJ_REQUIRE(door->listener != nullptr, "the run is over");
    return door->pending.wrap(pace.turn().then([this, context]() mutable { return take(context); }));
  }

 private:
  // An event is a write to the disk, for which everybody waits. An honest shim sends one after the other, a few a
  // second.
  static constexpr double mostAtOnce = 100, perSecond = 20;

  kj::Promise<void> take(EventContext context) {
    auto& listener = *door->listener;
    auto params = context.getParams();
    auto event = params.getEvent();
    // No run has so many, and the database could not hold the number: no row of this run could be written any more.
    KJ_REQUIRE(params.getSeq() <= INT64_MAX, "an event's number is out of range");
    switch (event.which()) {
      case proto::RunEvent::NOTE: return listener.onNote(params.getSeq(), bounded(event.getNote(), 1024));
      case proto::RunEvent::SESSION: return listener.onSession(params.getSeq(), bounded(event.getSession(), 256));
      case proto::RunEvent::USAGE: return listener.onUsage(params.getSeq(), read(event.getUsage()));
      case proto::RunEvent::NETWORK: return listener.onNetwork(params.getSeq(), read(event.getNetwork()));
      case proto::RunEvent::DENIED: {
        auto denied = event.getDenied();
        return listener.onDenied(params.getSeq(), {bounded(denied.getKind(), 16), bounded(denied.getWhat(), 1024),
                                                   bounded(denied.getWhy(), 256)});
      }
      case proto::RunEvent::ENDED: {
        auto ended = event.getEnded();
        return listener.onEnded(params.getSeq(), {oc::read(ended.getStatus()), ended.getStopped(),
                                                  bounded(ended.getDetail(), 1024), bounded(ended.getReason(), 32)});
      }
    }
    return kj::READY_NOW;  // of a later version: nothing that we know to do
  }

  kj::Own<EventDoor> door;
  Pace pace;
};

}  // namespace

std::string bounded(capnp::Text::Reader text, size_t limit) { return shortened(redacted(toString(text)), limit); }

proto::RunHost::Client hostFor(kj::Own<EventDoor> door, kj::Timer& timer) {
  return kj::heap<HostServer>(kj::mv(door), timer);
}

}  // namespace oc::work
