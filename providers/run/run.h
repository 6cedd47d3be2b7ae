// One run: the agent's streams, its end, and the clocks that may end it earlier.
#pragma once

#include <kj/async-io.h>
#include <kj/timer.h>

#include <memory>
#include <string>

#include "events.h"
#include "executors/executor.h"
#include "providers/kit/frames.h"
#include "gateway_channel.h"
#include "log.h"
#include "run.capnp.h"
#include "sandbox.capnp.h"

namespace oc::run {

// Our ends of the agent's standard streams, and the way to its process tree.
struct AgentEnds {
  kj::Own<kj::AsyncIoStream> attached;  // a container's, framed by the Engine; then `output` and `errors` are null
  kj::Own<kj::AsyncOutputStream> input;
  kj::Own<kj::AsyncInputStream> output, errors;
  proto::Process::Client process;
  kj::Promise<void> processGone;  // resolves when the process tree's parent has gone away
};

class Run final : private ExecutorHost, private kj::TaskSet::ErrorHandler {
 public:
  Run(kj::Timer& timer, AgentEnds agent, kj::AutoCloseFd log, proto::RunSetup::Reader setup,
      kj::Maybe<GatewayChannel&> gateway = nullptr);

  // The agent was started: from now on it is waited for.
  void launched();
  // The agent is asked in its own words where it has some, and half of the grace later by TERM; else by TERM at once.
  // KILL of the whole tree after the grace. The first reason stays.
  void stop(proto::StopReason why);
  // A message for the live agent; see Executor::inject. Answers at the run's end at the latest.
  kj::Promise<Delivery> inject(const std::string& id, const std::string& text);

  EventQueue& events() { return eventQueue; }
  const RunLog& log() const { return runLog; }
  bool ended() const { return hasEnded; }

 private:
  kj::Promise<void> readStreams();
  kj::Promise<void> pump(kj::AsyncInputStream& from, Executor::Stream stream);
  kj::Promise<void> pumpFrames();
  void received(Executor::Stream stream, kj::ArrayPtr<const kj::byte> bytes);
  void watchGateway();
  void write(std::string bytes) override;
  void closeInput() override;
  size_t unwritten() const override { return bytesToWrite; }
  void tellNote(const std::string& text) override { eventQueue.addNote(text); }
  void tellSession(const std::string& session) override { eventQueue.addSession(session); }
  void tellUsage(const AgentUsage& usage) override { eventQueue.addUsage(usage); }
  void expectEnd(kj::Duration within) override;
  void expectNoEnd() override { ++expectation; }
  void signalTree(int number);
  kj::Promise<void> waitForEnd();
  kj::Promise<void> drainStreams();
  kj::Promise<void> tellDenials(uint32_t seen);
  void watchClocks();
  kj::Promise<void> watchStall();
  void end(proto::ExitStatus::Reader status, const std::string& detail);
  void taskFailed(kj::Exception&& exception) override;

  kj::Timer& timer;
  AgentEnds agent;
  kj::Maybe<GatewayChannel&> gateway;
  kit::FrameReader frames;
  RunLog runLog;
  std::unique_ptr<Executor> executor;
  EventQueue eventQueue;
  kj::Duration timeout, stall, grace;
  kj::TimePoint lastOutput;
  proto::StopReason stopReason = proto::StopReason::NONE;
  std::string failure;  // of a part of ours, that stopped the run
  bool hasLaunched = false, hasEnded = false, troubleTold = false;
  uint64_t expectation = 0;  // counts what was expected: only the latest counts
  size_t bytesToWrite = 0;
  kj::Promise<void> writing = kj::READY_NOW;
  kj::Promise<void> streamsRead;
  kj::Promise<void> denialsTold = kj::READY_NOW;
  kj::byte outputBuffer[65536], errorsBuffer[65536];
  kj::TaskSet tasks;
};

}  // namespace oc::run
