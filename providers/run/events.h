// What the shim has to tell: numbered, in order, kept until it is acknowledged, whichever daemon is there.
#pragma once

#include <capnp/message.h>
#include <kj/async.h>

#include <deque>
#include <string>

#include "executors/executor.h"
#include "run.capnp.h"

namespace oc::run {

class EventQueue final : private kj::TaskSet::ErrorHandler {
 public:
  EventQueue();

  void addNote(const std::string& text);
  void addDenied(const std::string& kind, const std::string& what, const std::string& why);
  void addNetwork(uint64_t allowed, uint64_t denied, uint64_t bytesUp, uint64_t bytesDown);
  void addSession(const std::string& session);
  // What was told of it and has not been sent is replaced: only the latest counts.
  void addUsage(const AgentUsage& usage);
  void addEnded(proto::ExitStatus::Reader status, proto::StopReason stopped, const std::string& detail,
                const std::string& reason);

  // From now on events go to this daemon, beginning after `lastSeq`.
  void attach(proto::RunHost::Client host, uint64_t lastSeq);
  void detach();
  bool empty() const { return queue.empty(); }

 private:
  struct Event {
    uint64_t seq;
    kj::Own<capnp::MallocMessageBuilder> message;
    proto::RunEvent::Reader reader() { return message->getRoot<proto::RunEvent>().asReader(); }
  };

  proto::RunEvent::Builder add();
  void send();
  void acknowledge(uint64_t seq);

  // A note is at most 1 KiB; more than this many are not kept (the oldest notes go).
  static constexpr size_t maxQueued = 256;

  std::deque<Event> queue;
  uint64_t nextSeq = 1;
  kj::Maybe<proto::RunHost::Client> host;
  uint64_t hosts = 0;    // counts them: an answer of an earlier one does not keep the present one busy
  bool waiting = false;  // for an answer
  kj::TaskSet tasks;

  void taskFailed(kj::Exception&&) override {}
};

}  // namespace oc::run
