// From the toolbelt's channels to the daemon: one run's calls, bounded, whichever daemon is there.
#pragma once

#include <kj/timer.h>

#include <deque>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "base/json.h"
#include "base/refusal.h"
#include "line_stream.h"
#include "toolbelt.capnp.h"

namespace oc::run {

// What a call came to: JSON, or with `isError` a sentence or JSON that says to the agent why it failed.
struct Answer {
  std::string text;
  bool isError = false;
};

struct Credential {
  std::string username;
  SecretBytes password;
};

// Who carries out a call whose arguments keep to its operation's schema. Dropping the promise gives the call up.
class Caller {
 public:
  virtual ~Caller() noexcept(false) = default;
  virtual kj::Promise<Answer> call(const std::string& operation, Json arguments) = 0;
};

class DaemonCalls {
 public:
  explicit DaemonCalls(kj::Timer& timer) : timer(timer) {}

  // From now on calls go to this daemon; so do those whose answers were lost with an earlier one.
  void attach(proto::Toolbelt::Client daemon);
  // There is none: new calls fail, and say that trying again may help. Those that are under way wait for the next one.
  void detach();
  // The run has ended: calls fail for good, the ones that are under way too.
  void revoke();

  // Never breaks. At most 64 are under way, with 1 MiB of arguments; the others wait for their turn, and for `out`,
  // where the answer will go, to have room. One that takes five minutes is given up.
  kj::Promise<Answer> call(LineWriter& out, const std::string& operation, Json arguments);
  kj::Promise<OrRefusal<Credential>> credential(LineWriter& out, const std::string& protocol, const std::string& host,
                                                const std::string& path);

 private:
  class Slot;
  kj::Promise<kj::Own<Slot>> takeSlot(LineWriter& out, size_t bytes);
  void wakeNext();
  kj::Promise<Answer> start(const std::string& operation, const std::string& text, const Json& arguments);
  kj::Promise<Answer> ask(std::string operation, std::string text, std::string id, bool again);
  kj::Promise<OrRefusal<Credential>> askCredential(std::string protocol, std::string host, std::string path);
  // What is asked of one daemon after the other, until one lives to answer. `attempt` is told whether it is asked
  // again.
  template <typename T>
  kj::Promise<T> whicheverDaemon(kj::Function<kj::Promise<T>(bool again)> attempt, bool again = false);
  kj::Promise<void> daemonAfter(uint64_t which);
  kj::Promise<Answer> startBuiltIn(proto::Toolbelt::Client& to, const std::string& operation, const Json& arguments);
  Refusal absence() const;

  kj::Timer& timer;
  kj::Maybe<proto::Toolbelt::Client> daemon;
  uint64_t daemons = 0;  // that there were
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> awaiting;
  bool isRevoked = false;
  size_t underWay = 0, bytesUnderWay = 0;
  std::deque<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  kj::PromiseFulfillerPair<void> revocation = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> onRevoked = revocation.promise.fork();
};

// A refusal as the agent reads it.
std::string plain(const Refusal& refusal);

}  // namespace oc::run
