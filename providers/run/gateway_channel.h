// The shim's end of a container's gateway: gives it its policy, and takes what it tells.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>

#include <set>
#include <string>

#include "events.h"
#include "gateway.capnp.h"
#include "proto/byte_sink.h"
#include "proto/rpc.h"

namespace oc::run {

// Each attempt to get out of the container, as a line of JSON in the run's network log, which `runs network` shows.
class NetworkLog {
 public:
  // `fd` is open for appending, or -1 for none. At most `limit` bytes are written; the totals go on.
  NetworkLog(kj::AutoCloseFd fd, uint64_t limit);
  void add(proto::NetworkRecord::Reader record);

 private:
  kj::AutoCloseFd fd;
  uint64_t left;
};

class GatewayChannel final : private kj::TaskSet::ErrorHandler {
 public:
  // What a connection to the run's toolbelt is handed to.
  using ServeToolbelt = kj::Function<kj::Promise<void>(kj::Own<kj::AsyncIoStream>)>;

  // `stream` is the gateway's attach stream. Not one byte is written to it or read from it before `configure`: until
  // then the Engine's client may still be asking for the attachment on it.
  GatewayChannel(kj::Timer& timer, kj::Own<kj::AsyncIoStream> stream, NetworkLog log);
  ~GatewayChannel() noexcept(false);

  // Resolves when the gateway serves this policy. Breaks, saying why, when it does not: then nothing gets out.
  kj::Promise<void> configure(proto::GatewayPolicy::Reader policy, ServeToolbelt serveToolbelt);
  // From now on denials are told as events.
  void tell(EventQueue& events);
  // After the agent's end: resolves when what it had open is told, within a second, and the totals are an event.
  kj::Promise<void> conclude();
  // Resolves when the gateway has gone away.
  kj::Promise<void> onGone();

 private:
  class Host;
  void take(proto::NetworkRecord::Reader record);
  kj::Promise<void> waitUntilQuiet(int tries);
  void keep(kj::Promise<void> task);
  void taskFailed(kj::Exception&& exception) override;

  // Different ones, of the 64 that a run keeps in all.
  static constexpr size_t mostDenials = 48;

  kj::Timer& timer;
  NetworkLog log;
  kj::Own<kj::AsyncIoStream> stream;
  kj::Maybe<Connection> connection;
  kj::Maybe<proto::Gateway::Client> gateway;
  kj::Own<proto::RestingAnswers> answers;
  ServeToolbelt serveToolbelt;
  EventQueue* events = nullptr;
  std::set<std::string> denied;
  uint64_t allowedCount = 0, deniedCount = 0, bytesUp = 0, bytesDown = 0;
  kj::TaskSet tasks;
};

}  // namespace oc::run
