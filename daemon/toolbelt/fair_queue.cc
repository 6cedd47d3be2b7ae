#include "fair_queue.h"

namespace oc::toolbelt {

kj::Promise<kj::Own<FairQueue::Turn>> FairQueue::turn(const std::string& key) {
  auto paf = kj::newPromiseAndFulfiller<kj::Own<Turn>>();
  keys[key].waiting.push_back(kj::mv(paf.fulfiller));
  startNext();
  return kj::mv(paf.promise);
}

void FairQueue::startNext() {
  while (running < forAll && startOne()) {
  }
}

// The first key after the last one, in a circle, that has somebody waiting and is below its own bound.
bool FairQueue::startOne() {
  auto start = keys.upper_bound(last);
  for (size_t i = 0; i < keys.size(); ++i, ++start) {
    if (start == keys.end()) start = keys.begin();
    auto& [name, key] = *start;
    while (!key.waiting.empty() && !key.waiting.front()->isWaiting()) key.waiting.pop_front();
    if (key.waiting.empty() || key.running >= forOne) continue;
    auto next = kj::mv(key.waiting.front());
    key.waiting.pop_front();
    ++key.running;
    ++running;
    last = name;
    next->fulfill(kj::heap<Turn>(*this, name));
    return true;
  }
  return false;
}

void FairQueue::release(const std::string& key) {
  auto found = keys.find(key);
  --found->second.running;
  --running;
  startNext();
  found = keys.find(key);
  if (found->second.running == 0 && found->second.waiting.empty()) keys.erase(found);
}

}  // namespace oc::toolbelt
