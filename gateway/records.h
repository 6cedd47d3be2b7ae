// Tells the shim of each attempt to get out.
#pragma once

#include <kj/async.h>
#include <proto/gateway.capnp.h>

#include <deque>
#include <functional>
#include <map>
#include <tuple>

#include "attempt.h"
#include "loop.h"

namespace oc::gateway {

class Records final : public Journal, private kj::TaskSet::ErrorHandler {
 public:
  // `roomAgain` is called when the journal was full and is no longer.
  Records(Loop& loop, proto::GatewayHost::Client host, std::function<void()> roomAgain);

  void note(Attempt attempt) override;
  bool isFull() const override;

  // Resolves when all that was noted so far is on its way, what waits for a second to pass included: what is sent on
  // the channel afterwards comes behind it.
  kj::Promise<void> toldSoFar();

 private:
  using Alike = std::tuple<std::string, uint16_t, std::string>;

  void flushRefusals();
  void enqueue(Attempt attempt);
  void endRest();
  void sendSome();
  void send(const Attempt& attempt);
  void taskFailed(kj::Exception&& exception) override;

  proto::GatewayHost::Client host;
  std::function<void()> roomAgain;
  Timer second, rest;
  std::map<Alike, Attempt> refusals;  // of this second
  std::deque<Attempt> queue;
  unsigned unacknowledged = 0;
  uint64_t queued = 0, sent = 0;
  std::multimap<uint64_t, kj::Own<kj::PromiseFulfiller<void>>> waiting;  // for so many to be sent
  kj::TaskSet tasks;
};

}  // namespace oc::gateway
