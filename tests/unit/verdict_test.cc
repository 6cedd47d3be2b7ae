#include "daemon/work/verdict.h"

#include "tests/catch.h"

using namespace oc;
using state::Outcome;
using work::judge;

namespace {

work::AgentEnd endOf(int code, bool signaled = false) {
  work::AgentEnd end;
  end.process.known = true;
  end.process.signaled = signaled;
  end.process.code = code;
  return end;
}

work::AgentEnd stoppedBy(proto::StopReason why) {
  auto end = endOf(15, true);
  end.stopped = why;
  end.detail = "its detail";
  return end;
}

}  // namespace

TEST_CASE("a run that ended by itself is judged by its exit status") {
  CHECK(judge(endOf(0), true, "r1").outcome == Outcome::Succeeded);
  auto failed = judge(endOf(3), true, "r1");
  CHECK(failed.outcome == Outcome::Failed);
  CHECK(failed.reason == "exit_status");
  CHECK(failed.message.find('3') != std::string::npos);
  CHECK(failed.fix.empty());
  CHECK(judge(endOf(9, true), true, "r1").reason == "signal");
}

TEST_CASE("a program that is not there is told with what to do about it") {
  for (bool container : {false, true}) {
    auto missing = judge(endOf(127), true, "r1", container);
    CHECK(missing.reason == "exit_status");
    CHECK_THAT(missing.message, oc::hasText("127, which shells say of a program that they can't find"));
    CHECK_THAT(missing.fix, oc::hasText("open-conduit runs logs r1"));
    CHECK_THAT(missing.fix, oc::hasText(container ? "in the image" : "PATH"));
    CHECK_THAT(judge(endOf(126), true, "r1", container).message, oc::hasText("may not run"));
  }
}

TEST_CASE("a sandbox that started nothing is a refusal, with where to look") {
  for (auto& end : {endOf(1), endOf(6, true)}) {
    auto verdict = judge(end, false, "r1");
    CHECK(verdict.outcome == Outcome::Refused);
    CHECK(verdict.reason == "sandbox_unavailable");
    CHECK(verdict.fix.find("r1") != std::string::npos);
  }
  // An agent can remove the mark of its start. A success stays one: it says of itself that it never ran.
  CHECK(judge(endOf(0), false, "r1").outcome == Outcome::Succeeded);
  auto unknown = judge({}, false, "r1");
  CHECK(unknown.outcome == Outcome::Interrupted);
}

TEST_CASE("what the executor makes of it goes before the exit status") {
  auto end = endOf(1);
  end.reason = "budget";
  end.detail = "spent";
  CHECK(judge(end, true, "r1").reason == "budget");
  CHECK(judge(end, true, "r1").message == "spent");
  end.reason = "done";
  CHECK(judge(end, true, "r1").outcome == Outcome::Succeeded);
  end.stopped = proto::StopReason::EXECUTOR;
  CHECK(judge(end, true, "r1").outcome == Outcome::Succeeded);
  end.reason = "";
  CHECK(judge(end, true, "r1").reason == "agent_error");
}

TEST_CASE("who stopped a run goes before everything that its agent says") {
  using proto::StopReason;
  struct Row {
    StopReason why;
    Outcome outcome;
    const char* reason;
  };
  for (auto& row : {Row{StopReason::ASKED, Outcome::Stopped, "stopped"},
                    {StopReason::DRAIN, Outcome::Stopped, "drained"},
                    {StopReason::TIMEOUT, Outcome::Failed, "timeout"},
                    {StopReason::STALLED, Outcome::Failed, "stalled"},
                    {StopReason::ORPHANED, Outcome::Interrupted, "orphaned"},
                    {StopReason::FAILED, Outcome::Interrupted, "provider_failed"}}) {
    INFO(row.reason);
    auto end = stoppedBy(row.why);
    end.reason = "done";
    CHECK(judge(end, true, "r1").outcome == row.outcome);
    CHECK(judge(end, true, "r1").reason == row.reason);
  }
  // Of a shim of a later version.
  auto verdict = judge(stoppedBy(StopReason(200)), true, "r1");
  CHECK(verdict.outcome == Outcome::Interrupted);
  CHECK(verdict.message.find("200") != std::string::npos);
}
