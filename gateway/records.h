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

  // Tells what waits for a second to pass.
  void flushRefusals();

 private:
  using Alike = std::tuple<std::string, uint16_t, std::string>;

  void enqueue(Attempt attempt);
  void sendSome();
  void send(const Attempt& attempt);
  void taskFailed(kj::Exception&& exception) override;

  proto::GatewayHost::Client host;
  std::function<void()> roomAgain;
  Timer second;
  std::map<Alike, Attempt> refusals;  // of this second
  std::deque<Attempt> queue;
  unsigned unacknowledged = 0;
  kj::TaskSet tasks;
};

}  // namespace oc::gateway
