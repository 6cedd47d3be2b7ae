#include "run.h"

#include <kj/debug.h>
#include <signal.h>

#include "base/log.h"
#include "base/text.h"
#include "proto/convert.h"
#include "proto/rpc.h"

namespace oc::run {

namespace {

// How long the streams may stay open after the tree is gone: somebody outside may hold their other end.
constexpr auto streamsGrace = 2 * kj::SECONDS;
constexpr uint32_t mostDenials = 64;  // as sandbox.capnp has it

}  // namespace

Run::Run(kj::Timer& timer, AgentEnds agentParam, kj::AutoCloseFd logFd, proto::RunSetup::Reader setup,
         kj::Maybe<GatewayChannel&> gateway)
    : timer(timer),
      agent(kj::mv(agentParam)),
      gateway(gateway),
      runLog(kj::mv(logFd), setup.getLogLimit()),
      executor(makeExecutor(toString(setup.getExecutor()), toString(setup.getConfig()), *this)),
      timeout(setup.getTimeoutSeconds() * kj::SECONDS),
      stall(setup.getStallSeconds() * kj::SECONDS),
      grace(setup.getGraceSeconds() * kj::SECONDS),
      lastOutput(timer.now()),
      streamsRead(nullptr),
      tasks(*this) {
  streamsRead = readStreams().eagerlyEvaluate(nullptr);
  executor->start(toString(setup.getStdin()));
  watchGateway();
}

kj::Promise<void> Run::readStreams() {
  if (agent.attached.get() != nullptr) return pumpFrames();
  kj::Vector<kj::Promise<void>> streams;
  // Eagerly: a join runs nothing of its branches before all of them are ready.
  streams.add(pump(*agent.output, Executor::Stream::Output).eagerlyEvaluate(nullptr));
  streams.add(pump(*agent.errors, Executor::Stream::Errors).eagerlyEvaluate(nullptr));
  return kj::joinPromises(streams.releaseAsArray());
}

// A container without its way out is not what was asked for.
void Run::watchGateway() {
  KJ_IF_MAYBE (channel, gateway) {
    channel->tell(eventQueue);
    tasks.add(channel->onGone().then([this]() {
      if (hasEnded || stopReason != proto::StopReason::NONE) return;
      failure = "the run's gateway went away";
      stop(proto::StopReason::FAILED);
    }));
  }
}

void Run::received(Executor::Stream stream, kj::ArrayPtr<const kj::byte> bytes) {
  lastOutput = timer.now();
  executor->received(stream, bytes, runLog);
  if (runLog.trouble().empty() || troubleTold) return;
  troubleTold = true;
  eventQueue.addNote(runLog.trouble());
}

kj::Promise<void> Run::pumpFrames() {
  return agent.attached->tryRead(outputBuffer, 1, sizeof(outputBuffer)).then([this](size_t n) -> kj::Promise<void> {
    if (n == 0) return kj::READY_NOW;
    frames.feed(kj::arrayPtr(outputBuffer, n), [this](kit::FrameReader::Stream stream,
                                                      kj::ArrayPtr<const kj::byte> bytes) {
      received(stream == kit::FrameReader::Stream::Output ? Executor::Stream::Output : Executor::Stream::Errors, bytes);
    });
    return pumpFrames();
  });
}

kj::Promise<void> Run::pump(kj::AsyncInputStream& from, Executor::Stream stream) {
  auto& buffer = stream == Executor::Stream::Output ? outputBuffer : errorsBuffer;
  return from.tryRead(buffer, 1, sizeof(buffer)).then([this, &from, stream, &buffer](size_t n) -> kj::Promise<void> {
    if (n == 0) return kj::READY_NOW;
    received(stream, kj::arrayPtr(buffer, n));
    return pump(from, stream);
  });
}

void Run::write(std::string bytes) {
  auto size = bytes.size();
  bytesToWrite += size;
  auto put = [this, bytes = kj::heap<std::string>(std::move(bytes))]() mutable -> kj::Promise<void> {
    if (agent.input.get() == nullptr) return kj::READY_NOW;
    auto written = agent.input->write(bytes->data(), bytes->size());
    return written.attach(kj::mv(bytes));
  };
  writing = writing.then(kj::mv(put))
                .catch_([](kj::Exception&&) {})  // an agent may close its input early
                .then([this, size]() { bytesToWrite -= size; })
                .eagerlyEvaluate(nullptr);
}

void Run::closeInput() {
  writing = writing.then([this]() { agent.input = nullptr; }).eagerlyEvaluate(nullptr);
}

// It may hang with all said, or leave children that hold its streams.
void Run::expectEnd(kj::Duration within) {
  auto mine = ++expectation;
  tasks.add(timer.afterDelay(within).then([this, mine, within]() {
    if (mine != expectation || hasEnded || stopReason != proto::StopReason::NONE) return;
    if (within > 0 * kj::SECONDS) {
      eventQueue.addNote(
          fmt::format("it was still there {} s after its last word, and was ended", within / kj::SECONDS));
    }
    stop(proto::StopReason::EXECUTOR);
  }));
}

kj::Promise<Delivery> Run::inject(const std::string& id, const std::string& text) {
  if (hasEnded) return Delivery{false, "the run has ended"};
  if (stopReason != proto::StopReason::NONE) return Delivery{false, "the run is being stopped"};
  return executor->inject(id, text);
}

void Run::launched() {
  if (hasLaunched) return;
  hasLaunched = true;
  lastOutput = timer.now();
  denialsTold = tellDenials(0).catch_([](kj::Exception&& e) { logDebug("{}", describe(e)); }).eagerlyEvaluate(nullptr);
  tasks.add(waitForEnd());
  watchClocks();
}

void Run::watchClocks() {
  if (timeout > 0 * kj::SECONDS) {
    tasks.add(timer.afterDelay(timeout).then([this]() { stop(proto::StopReason::TIMEOUT); }));
  }
  if (stall > 0 * kj::SECONDS) tasks.add(watchStall());
}

// Wakes once per period at most: when there was output meanwhile, for what is left of the period since.
kj::Promise<void> Run::watchStall() {
  return timer.atTime(lastOutput + stall).then([this]() -> kj::Promise<void> {
    if (hasEnded) return kj::READY_NOW;
    if (timer.now() - lastOutput < stall) return watchStall();
    stop(proto::StopReason::STALLED);
    return kj::READY_NOW;
  });
}

void Run::stop(proto::StopReason why) {
  if (hasEnded || stopReason != proto::StopReason::NONE) return;
  stopReason = why;
  bool asked = why != proto::StopReason::EXECUTOR && executor->interrupt();
  tasks.add(timer.afterDelay(asked ? grace / 2 : 0 * kj::SECONDS).then([this]() { signalTree(SIGTERM); }));
  tasks.add(timer.afterDelay(grace).then([this]() { signalTree(SIGKILL); }));
}

void Run::signalTree(int number) {
  if (hasEnded) return;
  auto request = agent.process.signalRequest();
  request.setNumber(number);
  tasks.add(request.send().ignoreResult());
}

kj::Promise<void> Run::waitForEnd() {
  auto gone = kj::mv(agent.processGone).then([]() -> capnp::Response<proto::Process::WaitResults> {
    kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, ""));
  });
  return agent.process.waitRequest()
      .send()
      .exclusiveJoin(kj::mv(gone))
      .then(
          [this](capnp::Response<proto::Process::WaitResults> response) {
            return drainStreams().then(
                [this, response = kj::mv(response)]() mutable { end(response.getStatus(), ""); });
          },
          [this](kj::Exception&& exception) {
            return drainStreams().then([this, exception = kj::mv(exception)]() mutable {
              capnp::MallocMessageBuilder message;
              auto status = message.initRoot<proto::ExitStatus>();
              status.setUnknown("");
              if (stopReason == proto::StopReason::NONE) stopReason = proto::StopReason::FAILED;
              // Of the call that was under way, and of the connection itself: whichever is told first.
              bool gone = exception.getType() == kj::Exception::Type::DISCONNECTED;
              end(status,
                  gone ? "the parent of the agent's processes went away, and the agent with it" : describe(exception));
            });
          });
}

// One that comes back for more than there may be is no longer asked.
kj::Promise<void> Run::tellDenials(uint32_t seen) {
  auto request = agent.process.denialsRequest();
  request.setSeen(seen);
  return request.send().then([this, seen](auto&& response) -> kj::Promise<void> {
    auto denials = response.getDenials();
    if (denials.size() == 0 || seen + denials.size() > mostDenials) return kj::READY_NOW;
    auto text = [](capnp::Text::Reader from) { return printable(toString(from)); };
    for (auto denial : denials) {
      eventQueue.addDenied(shortened(text(denial.getKind()), 16), text(denial.getWhat()), text(denial.getWhy()));
    }
    return tellDenials(seen + denials.size());
  });
}

kj::Promise<void> Run::drainStreams() {
  return kj::mv(streamsRead)
      .exclusiveJoin(timer.afterDelay(streamsGrace))
      .catch_([](kj::Exception&& exception) { logWarning("reading the agent's output: {}", describe(exception)); })
      .then([this]() { return kj::mv(denialsTold).exclusiveJoin(timer.afterDelay(streamsGrace)); })
      .then([this]() -> kj::Promise<void> {
        KJ_IF_MAYBE (channel, gateway) return channel->conclude();
        return kj::READY_NOW;
      });
}

void Run::end(proto::ExitStatus::Reader status, const std::string& detail) {
  if (hasEnded) return;
  hasEnded = true;
  auto verdict = executor->finished(oc::read(status), runLog);
  if (runLog.dropped() > 0) {
    eventQueue.addNote(fmt::format("{} bytes of output were dropped: {}", runLog.dropped(), runLog.trouble()));
  }
  eventQueue.addEnded(status, stopReason,
                      !failure.empty()       ? failure
                      : verdict.word.empty() ? detail
                                             : verdict.text,
                      verdict.word);
}

void Run::taskFailed(kj::Exception&& exception) {
  // The process tree's parent is gone, or the agent's input is closed: waitForEnd says so in the outcome.
  logDebug("{}", describe(exception));
}

}  // namespace oc::run
