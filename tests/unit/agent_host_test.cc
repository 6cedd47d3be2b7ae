// What the daemon takes of a run's shim, which may have been taken over.
#include "daemon/work/agent_parts.h"

#include <kj/async-io.h>

#include "tests/catch.h"

namespace oc {
namespace {

class Counting final : public work::AgentListener {
 public:
  kj::Promise<void> onNote(uint64_t seq, const std::string&) override {
    seqs.push_back(seq);
    return kj::READY_NOW;
  }
  kj::Promise<void> onSession(uint64_t, const std::string&) override { return kj::READY_NOW; }
  kj::Promise<void> onUsage(uint64_t, const state::Usage&) override { return kj::READY_NOW; }
  kj::Promise<void> onNetwork(uint64_t, const state::NetworkTotals&) override { return kj::READY_NOW; }
  kj::Promise<void> onDenied(uint64_t, const state::Denial&) override { return kj::READY_NOW; }
  kj::Promise<void> onEnded(uint64_t, const work::AgentEnd&) override { return kj::READY_NOW; }
  void onLost(const std::string&) override {}

  std::vector<uint64_t> seqs;
};

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  Counting listener;
  kj::Own<work::EventDoor> door = kj::refcounted<work::EventDoor>(listener);
  proto::RunHost::Client host = work::hostFor(kj::addRef(*door), timer);

  kj::Promise<void> note(uint64_t seq) {
    auto request = host.eventRequest();
    request.setSeq(seq);
    request.initEvent().setNote("note");
    return request.send().ignoreResult();
  }
};

}  // namespace

TEST_CASE("G3 a shim's events are taken at a pace, in their order, however many come at once") {
  World world;
  std::vector<kj::Promise<void>> all;
  for (uint64_t seq = 1; seq <= 500; ++seq) all.push_back(world.note(seq).eagerlyEvaluate(nullptr));
  world.io.waitScope.poll();
  CHECK(world.listener.seqs.size() == 100);
  world.timer.advanceTo(world.timer.now() + 10 * kj::SECONDS);
  world.io.waitScope.poll();
  CHECK(world.listener.seqs.size() == 300);
  world.timer.advanceTo(world.timer.now() + 60 * kj::SECONDS);
  world.io.waitScope.poll();
  CHECK(world.listener.seqs.size() == 500);
  CHECK(std::is_sorted(world.listener.seqs.begin(), world.listener.seqs.end()));
}

TEST_CASE("G3 a shim's events come to nobody who is gone, also those that came before") {
  World world;
  std::vector<kj::Promise<void>> all;
  size_t failed = 0;
  for (uint64_t seq = 1; seq <= 150; ++seq) {
    all.push_back(world.note(seq).eagerlyEvaluate([&failed](kj::Exception&&) { ++failed; }));
  }
  world.io.waitScope.poll();
  world.door->close();
  world.timer.advanceTo(world.timer.now() + 60 * kj::SECONDS);
  world.io.waitScope.poll();
  CHECK(world.listener.seqs.size() == 100);
  CHECK(failed == 50);
  CHECK_THROWS(world.note(151).wait(world.io.waitScope));
}

TEST_CASE("G3 a number that no database could hold is no event's") {
  World world;
  CHECK_THROWS(world.note(UINT64_MAX).wait(world.io.waitScope));
  CHECK_THROWS(world.note(uint64_t(INT64_MAX) + 1).wait(world.io.waitScope));
  CHECK(world.listener.seqs.empty());
  world.note(INT64_MAX).wait(world.io.waitScope);  // the control
  CHECK(world.listener.seqs.size() == 1);
}

}  // namespace oc
