#include "events.h"

#include "base/text.h"
#include "proto/convert.h"

namespace oc::run {

EventQueue::EventQueue() : tasks(*this) {}

proto::RunEvent::Builder EventQueue::add() {
  if (queue.size() >= maxQueued) queue.pop_front();
  queue.push_back({nextSeq++, kj::heap<capnp::MallocMessageBuilder>()});
  return queue.back().message->initRoot<proto::RunEvent>();
}

void EventQueue::addNote(const std::string& text) {
  add().setNote(toText(shortened(text, 1024)));
  send();
}

void EventQueue::addDenied(const std::string& kind, const std::string& what, const std::string& why) {
  auto denied = add().initDenied();
  denied.setKind(toText(kind));
  denied.setWhat(toText(shortened(what, 1024)));
  denied.setWhy(toText(shortened(why, 256)));
  send();
}

void EventQueue::addNetwork(uint64_t allowed, uint64_t denied, uint64_t bytesUp, uint64_t bytesDown) {
  auto totals = add().initNetwork();
  totals.setAllowed(allowed);
  totals.setDenied(denied);
  totals.setBytesUp(bytesUp);
  totals.setBytesDown(bytesDown);
  send();
}

void EventQueue::addSession(const std::string& session) {
  add().setSession(toText(session));
  send();
}

void EventQueue::addUsage(const AgentUsage& from) {
  bool replaces = queue.size() > 1 && queue.back().reader().isUsage();
  auto usage = replaces ? queue.back().message->getRoot<proto::RunEvent>().getUsage() : add().initUsage();
  usage.setInputTokens(from.inputTokens);
  usage.setOutputTokens(from.outputTokens);
  usage.setCacheReadTokens(from.cacheReadTokens);
  usage.setCacheWriteTokens(from.cacheWriteTokens);
  usage.setCostMicroUsd(from.costMicroUsd);
  usage.setTurns(from.turns);
  send();
}

void EventQueue::addEnded(proto::ExitStatus::Reader status, proto::StopReason stopped, const std::string& detail,
                          const std::string& reason) {
  auto ended = add().initEnded();
  ended.setStatus(status);
  ended.setStopped(stopped);
  ended.setDetail(toText(shortened(detail, 1024)));
  ended.setReason(toText(reason));
  send();
}

void EventQueue::attach(proto::RunHost::Client newHost, uint64_t lastSeq) {
  host = kj::mv(newHost);
  ++hosts;
  waiting = false;
  acknowledge(lastSeq);
  send();
}

void EventQueue::detach() {
  host = nullptr;
  ++hosts;
  waiting = false;
}

void EventQueue::acknowledge(uint64_t seq) {
  while (!queue.empty() && queue.front().seq <= seq) queue.pop_front();
}

// One at a time: they come in order, and a daemon that is slow holds at most one.
void EventQueue::send() {
  if (queue.empty() || waiting) return;
  KJ_IF_MAYBE (to, host) {
    auto request = to->eventRequest();
    auto seq = queue.front().seq;
    request.setSeq(seq);
    request.setEvent(queue.front().reader());
    waiting = true;
    tasks.add(request.send().then([this, seq, ours = hosts](auto&&) {
      acknowledge(seq);
      if (ours != hosts) return;
      waiting = false;
      send();
    }));  // a host that is gone never answers; the next one gets the event
  }
}

}  // namespace oc::run
