// Turns for jobs of several keys (runs): who has many waiting does not keep the others from theirs.
#pragma once

#include <kj/async.h>

#include <memory>
#include <string>

namespace oc::toolbelt {

class FairQueue {
 public:
  // At most `forOne` jobs of one key at a time, and `forAll` in all.
  FairQueue(size_t forOne, size_t forAll);
  ~FairQueue() noexcept(false);

  // Resolves when it is this key's turn, which lasts until the result goes away, also when the queue is gone before.
  // Keys take turns; of one key, who came first. Dropping the promise gives the place up.
  class Turn;
  kj::Promise<kj::Own<Turn>> turn(const std::string& key);

 private:
  struct State;
  std::shared_ptr<State> state;
};

class FairQueue::Turn {
 public:
  Turn(std::shared_ptr<State> state, std::string key);
  ~Turn() noexcept(false);
  KJ_DISALLOW_COPY(Turn);

 private:
  std::shared_ptr<State> state;
  std::string key;
};

}  // namespace oc::toolbelt
