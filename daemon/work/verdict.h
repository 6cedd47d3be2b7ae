// What a run's end means: from what its shim tells of the agent's end to the run's outcome and reason.
#pragma once

#include "agent.h"
#include "base/refusal.h"
#include "daemon/state/store.h"

namespace oc::work {

struct Verdict {
  state::Outcome outcome;
  std::string reason;  // a word of docs/reasons.md; empty when it succeeded
  std::string message;
  std::string fix;  // of refusals
};

// `started`: the sandbox got as far as starting the job. What ended the run goes before its exit status, and so does
// what the executor makes of its agent's output, unless something of ours stopped it. `container`: of a container's end
// the Engine knows a status alone, so that a signal cannot be told from the status that stands for it.
Verdict judge(const AgentEnd& end, bool started, const std::string& run, bool container = false);

}  // namespace oc::work
