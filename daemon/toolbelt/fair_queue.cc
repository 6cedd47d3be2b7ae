#include "fair_queue.h"

#include <deque>
#include <map>

namespace oc::toolbelt {

struct FairQueue::State : std::enable_shared_from_this<State> {
  struct Key {
    size_t running = 0;
    std::deque<kj::Own<kj::PromiseFulfiller<kj::Own<Turn>>>> waiting;
    bool isIdle() {
      while (!waiting.empty() && !waiting.front()->isWaiting()) waiting.pop_front();  // given up
      return running == 0 && waiting.empty();
    }
  };

  void startNext() {
    while (running < forAll && startOne()) {
    }
  }

  // The first key after the last one, in a circle, that has somebody waiting and is below its own bound.
  bool startOne() {
    auto at = keys.upper_bound(last);
    for (size_t i = keys.size(); i > 0; --i) {
      if (at == keys.end()) at = keys.begin();
      auto& [name, key] = *at;
      if (key.isIdle()) {
        at = keys.erase(at);
        continue;
      }
      if (!key.waiting.empty() && key.running < forOne) {
        start(name, key);
        return true;
      }
      ++at;
    }
    return false;
  }

  void start(const std::string& name, Key& key) {
    auto next = kj::mv(key.waiting.front());
    key.waiting.pop_front();
    ++key.running;
    ++running;
    last = name;
    next->fulfill(kj::heap<Turn>(shared_from_this(), name));
  }

  void release(const std::string& key) {
    --keys[key].running;
    --running;
    startNext();
  }

  size_t forOne, forAll, running = 0;
  std::map<std::string, Key> keys;
  std::string last;  // that got a turn
};

FairQueue::FairQueue(size_t forOne, size_t forAll) : state(std::make_shared<State>()) {
  state->forOne = forOne;
  state->forAll = forAll;
}

FairQueue::~FairQueue() noexcept(false) = default;

kj::Promise<kj::Own<FairQueue::Turn>> FairQueue::turn(const std::string& key) {
  auto paf = kj::newPromiseAndFulfiller<kj::Own<Turn>>();
  state->keys[key].waiting.push_back(kj::mv(paf.fulfiller));
  state->startNext();
  return kj::mv(paf.promise);
}

FairQueue::Turn::Turn(std::shared_ptr<State> state, std::string key) : state(std::move(state)), key(std::move(key)) {}
FairQueue::Turn::~Turn() noexcept(false) { state->release(key); }

}  // namespace oc::toolbelt
