// Every attack that we know (attack/), carried out in a run of a binding's own sandbox, and outside beside it, where it
// has to succeed. In a process of its own: it reads what a container's image made of the attacks' answers.
#pragma once

#include <kj/async.h>

#include <functional>
#include <string>
#include <vector>

#include "daemon/work/containers.h"
#include "daemon/work/plan.h"

namespace oc::attack {

struct Row {
  std::string against;  // whose promise it is about: own, credential, read, write, git, process, …
  std::string name;
  std::string outside, inside;  // "through", "held EPERM", "held -", "absent", "failed …"
  // through: something got through that the policy does not grant; granted: it does; held; unproven: held, but outside
  // it did not succeed either, so that it says nothing of the sandbox; absent: this machine has no such target; failed:
  // it could not be tried.
  enum class Verdict { Held, Through, Granted, Unproven, Absent, Failed } verdict = Verdict::Failed;
};
const char* toText(Row::Verdict verdict);

struct Report {
  std::vector<Row> rows;
  double seconds = 0;  // of the run in the sandbox

  size_t count(Row::Verdict verdict) const;
  // Nothing got through, nothing failed, and there was something to hold.
  bool held() const;
};

struct Setting {
  const config::Config& config;
  const config::Binding& binding;
  const Places& places;
  supervisor::Supervisor& supervisor;
  work::Containers& containers;
  const work::Environment& own;
  // To show what a measure is good for: what is launched is this changed plan. Before that, its sandbox's settings are
  // written.
  std::function<void(work::Plan&)> weaken = nullptr;
  bool keepRedirection = false;  // likewise: what is removed after a container's end stays
};

// Makes a Work and a run of its own in the usual places, as real ones have them, and removes them. Refuses what a run
// of the binding would be refused for, and a binding without a sandbox (`attack_unsandboxed`).
kj::Promise<OrRefusal<Report>> runBattery(const Setting& setting);

}  // namespace oc::attack
