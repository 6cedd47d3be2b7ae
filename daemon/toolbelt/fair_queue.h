// Turns for jobs of several keys (runs): who has many waiting does not keep the others from theirs.
#pragma once

#include <kj/async.h>

#include <deque>
#include <map>
#include <string>

namespace oc::toolbelt {

class FairQueue {
 public:
  // At most `forOne` jobs of one key at a time, and `forAll` in all.
  FairQueue(size_t forOne, size_t forAll) : forOne(forOne), forAll(forAll) {}

  // Resolves when it is this key's turn, which lasts until the result goes away. Keys take turns; of one key, who came first.
  // A job begins on a turn of the loop of its own. Dropping the promise gives the place up. The queue outlives the turns.
  class Turn;
  kj::Promise<kj::Own<Turn>> turn(const std::string& key);

 private:
  struct Key {
    size_t running = 0;
    std::deque<kj::Own<kj::PromiseFulfiller<kj::Own<Turn>>>> waiting;
  };
  void startNext();
  bool startOne();
  void release(const std::string& key);

  size_t forOne, forAll, running = 0;
  std::map<std::string, Key> keys;
  std::string last;  // that got a turn
};

class FairQueue::Turn {
 public:
  Turn(FairQueue& queue, std::string key) : queue(queue), key(std::move(key)) {}
  ~Turn() noexcept(false) { queue.release(key); }
  KJ_DISALLOW_COPY(Turn);

 private:
  FairQueue& queue;
  std::string key;
};

}  // namespace oc::toolbelt
