#include "verdict.h"

#include <kj/debug.h>

#include <fmt/format.h>

namespace oc::work {

using state::Outcome;

namespace {

Verdict ofExecutor(const AgentEnd& end) {
  if (end.reason == "done") return {Outcome::Succeeded, "", "", ""};
  return {Outcome::Failed, end.reason.empty() ? "agent_error" : end.reason,
          end.reason.empty() ? "its executor ended it" : end.detail, ""};
}

Verdict ofSandboxThatStartedNothing(const ProcessEnd& process, const std::string& run) {
  return {Outcome::Refused, "sandbox_unavailable",
          fmt::format("the sandbox ended before it started the job ({} {}); its own words are in the run's log. it may "
                      "also give up on a machine that is too busy",
                      process.signaled ? "signal" : "exit status", process.code),
          fmt::format("open-conduit runs logs {}; open-conduit doctor", run)};
}

Verdict ofExitStatus(int code, const std::string& run, bool container) {
  auto what = fmt::format("the job ended with exit status {}", code);
  if (code != 126 && code != 127) return {Outcome::Failed, "exit_status", what, ""};
  auto fix = fmt::format("open-conduit runs logs {} names the program; {}", run,
                         container ? "it has to be in the image, and its folder in the image's or the binding's PATH"
                                   : "give the binding's env a PATH that has its folder, or name it by its whole path");
  return {Outcome::Failed, "exit_status",
          what + (code == 127 ? ", which shells say of a program that they can't find"
                              : ", which shells say of a program that they may not run"),
          fix};
}

// Nobody stopped it.
Verdict ofItself(const AgentEnd& end, bool started, const std::string& run, bool container) {
  auto& process = end.process;
  if (!end.reason.empty() && started) return ofExecutor(end);
  if (!process.known) {
    return {Outcome::Interrupted, "interrupted", end.detail.empty() ? "nobody knows how it ended" : end.detail, ""};
  }
  if (!started && (process.signaled || process.code != 0)) return ofSandboxThatStartedNothing(process, run);
  if (process.signaled && container) {
    return {Outcome::Failed, "signal",
            fmt::format(
                "the job was killed by signal {}, or ended with exit status {}, which is how a container tells of it",
                process.code, 128 + process.code),
            ""};
  }
  if (process.signaled) {
    return {Outcome::Failed, "signal", fmt::format("the job was killed by signal {}", process.code), ""};
  }
  if (process.code != 0) {
    return ofExitStatus(process.code, run, container);
  }
  return {Outcome::Succeeded, "", "", ""};
}

}  // namespace

Verdict judge(const AgentEnd& end, bool started, const std::string& run, bool container) {
  switch (end.stopped) {
    case proto::StopReason::EXECUTOR: return ofExecutor(end);
    case proto::StopReason::NONE: return ofItself(end, started, run, container);
    case proto::StopReason::ASKED: return {Outcome::Stopped, "stopped", "it was stopped on request", ""};
    case proto::StopReason::DRAIN:
      return {Outcome::Stopped, "drained", "it was stopped since the daemon is being drained", ""};
    case proto::StopReason::TIMEOUT:
      return {Outcome::Failed, "timeout", "it ran longer than the binding's timeout", ""};
    case proto::StopReason::STALLED:
      return {Outcome::Failed, "stalled", "it printed nothing for the binding's stall_timeout", ""};
    case proto::StopReason::ORPHANED:
      return {Outcome::Interrupted, "orphaned", "it was without a daemon that it could talk to, for too long", ""};
    case proto::StopReason::FAILED: return {Outcome::Interrupted, "provider_failed", end.detail, ""};
  }
  // Of a shim of a later version. What it means is not known, so it is not called a success.
  return {Outcome::Interrupted, "interrupted",
          fmt::format("it was stopped for a reason that this version does not know ({})", uint16_t(end.stopped)), ""};
}

}  // namespace oc::work
