// Talking to the daemon: getting in, and asking.
#pragma once

#include <kj/async-io.h>

#include <string>

#include "base/places.h"
#include "failure.h"
#include "proto/convert.h"
#include "world.h"

namespace oc::cli {

// Dials the control socket, sees that it is this user's, and shows the operator token. Throws Failure: NoDaemon with
// how to start one, or No with why the daemon does not let us in.
Link connectToDaemon(kj::AsyncIoContext& io, const Places& places);

// The same over a stream that is connected already.
Link logIn(kj::AsyncIoContext& io, kj::Own<kj::AsyncIoStream> stream, std::string_view token);

// What a failed call means to a person.
Failure failureOf(const kj::Exception& exception);

// What the daemon answers at once, it answers within this.
constexpr kj::Duration answerLimit = 30 * kj::SECONDS;

// Waits for what takes as long as it takes.
template <typename T>
T await(World& world, kj::Promise<T> promise) {
  try {
    return promise.wait(world.io().waitScope);
  } catch (const kj::Exception& exception) {
    throw failureOf(exception);
  }
}

// Waits for an answer; Failure when it is late.
template <typename Results>
capnp::Response<Results> ask(World& world, capnp::RemotePromise<Results> call) {
  auto& timer = world.io().provider->getTimer();
  kj::Promise<capnp::Response<Results>> answer = kj::mv(call);
  return await(world, withDeadline(timer, answerLimit, "the daemon", kj::mv(answer)));
}

// The same without a limit.
template <typename Results>
capnp::Response<Results> askPatiently(World& world, capnp::RemotePromise<Results> call) {
  kj::Promise<capnp::Response<Results>> answer = kj::mv(call);
  return await(world, kj::mv(answer));
}

// Nothing when Ctrl-C came first.
template <typename Results>
kj::Maybe<capnp::Response<Results>> askUntilInterrupted(World& world, capnp::RemotePromise<Results> call) {
  using Answer = kj::Maybe<capnp::Response<Results>>;
  auto answer = call.then([](capnp::Response<Results>&& response) { return Answer(kj::mv(response)); });
  auto interrupted = world.interrupted().then([]() { return Answer(nullptr); });
  return await(world, answer.exclusiveJoin(kj::mv(interrupted)));
}

// Throws a refusal in results as a Failure.
void requireDone(proto::Refusal::Reader refusal);

}  // namespace oc::cli
