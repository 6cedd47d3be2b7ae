// A procedure as a list of steps, each of which may refuse: then none of the following is made.
#pragma once

#include <kj/async.h>

#include <optional>
#include <utility>

#include "base/refusal.h"

namespace oc::docker {

// Nothing: it was done.
using Step = kj::Promise<std::optional<Refusal>>;

inline Step done() { return std::optional<Refusal>(); }

template <typename F>
Step inOrder(Step first, F next) {
  return first.then([next = kj::mv(next)](std::optional<Refusal> refusal) mutable -> Step {
    if (refusal) return refusal;
    return next();
  });
}

template <typename F, typename... Rest>
Step inOrder(Step first, F next, Rest... rest) {
  return inOrder(inOrder(kj::mv(first), kj::mv(next)), kj::mv(rest)...);
}

// Both at once, and both to their end. The first one's refusal counts first.
inline Step both(Step one, Step other) {
  kj::Vector<Step> steps;
  // Eagerly: a join runs nothing of its branches before all of them are ready.
  steps.add(one.eagerlyEvaluate(nullptr));
  steps.add(other.eagerlyEvaluate(nullptr));
  return kj::joinPromises(steps.releaseAsArray()).then([](kj::Array<std::optional<Refusal>> refusals) {
    return kj::mv(refusals[0] ? refusals[0] : refusals[1]);
  });
}

}  // namespace oc::docker
