// Who may attach to Work, and what waits meanwhile.
#include <fmt/format.h>

#include <algorithm>

#include "attachment.h"
#include "base/log.h"
#include "base/text.h"
#include "scheduler.h"

namespace oc::work {

using state::RunState;
using state::WorkState;

// What a person's connection holds. The container's end does not need it; its own end does end the container.
class Scheduler::Held final : public control::Attachment {
 public:
  Held(Scheduler& scheduler, std::string work, kj::Own<oc::work::Attachment> container)
      : scheduler(scheduler), work(std::move(work)), container(kj::mv(container)) {}
  ~Held() noexcept(false) {
    if (container.get() != nullptr) {
      container->end();
    } else {
      scheduler.detached(work);
    }
  }

  std::string terminal() override { return inContainer().terminalSocket(); }
  void resize(control::TerminalSize size) override { inContainer().resize(size); }
  kj::Promise<ProcessEnd> wait() override { return inContainer().whenGone(); }

 private:
  oc::work::Attachment& inContainer() {
    KJ_REQUIRE(container.get() != nullptr, "this attachment is on the host");
    return *container;
  }

  Scheduler& scheduler;
  std::string work;
  kj::Own<oc::work::Attachment> container;
};

std::optional<Refusal> Scheduler::refuseAttachment(const std::string& id) {
  auto busy = [&id](const std::string& why, const std::string& fix) {
    return Refusal{"work_busy", fmt::format("Work {} {}", id, why), fix};
  };
  auto work = theStore->work(id);
  if (!work) return Refusal{"not_found", "there is no work " + printable(id), "open-conduit work list"};
  if (work->state == WorkState::Finished || work->state == WorkState::Cancelled) {
    return Refusal{"work_ended", fmt::format("Work {} has ended, with its workspace", id), ""};
  }
  if (work->state != WorkState::Open || ending.count(id) != 0) return busy("is being ended", "wait a moment");
  if (draining) return Refusal{"draining", "the daemon is being drained and takes no new work", "start it again"};
  if (attached.count(id) != 0) return busy("is attached to already", "end that attachment first");
  for (auto& run : theStore->runsOf(id)) {
    if (run.state == RunState::Ended) continue;
    bool lives = live.count(run.id) != 0;
    return busy(fmt::format("has run {}, which {}", run.id, lives ? "is alive" : "waits to begin"),
                "wait for its end, or: open-conduit runs stop " + run.id);
  }
  if (!work->workspaceMade)
    return Refusal{"work_ended", fmt::format("Work {} has no workspace (any more, or yet)", id), ""};
  return std::nullopt;
}

// Of the newest run that got as far as having one.
std::optional<PinnedContainer> Scheduler::lastPlan(const std::string& work) {
  auto runs = theStore->runsOf(work);
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (auto json = theStore->plan(run->id)) return PinnedContainer{run->id, run->planSha256, parseJson(*json)};
  }
  return std::nullopt;
}

kj::Promise<OrRefusal<control::AttachPlace>> Scheduler::attachWork(std::string id, control::TerminalFacts terminal) {
  using Result = OrRefusal<control::AttachPlace>;
  if (auto refusal = refuseAttachment(id)) return Result(*refusal);
  auto plan = lastPlan(id);
  if (!plan) {
    return Result(Refusal{"no_plan",
                          fmt::format("no run of Work {} got as far as a plan, so it ran in nothing yet", id),
                          "open-conduit work get " + id});
  }
  auto kind = plan->document.value("kind", "");
  if (kind == "none") return attachOnHost(id);
  if (kind != "docker") {
    return Result(
        Refusal{"attach_sandboxed",
                fmt::format("Work {} ran in a process sandbox; what its agent left must not run on your machine", id),
                "run it in a container to attach to it; open-conduit work say gives its agent a message"});
  }
  auto container =
      kj::refcounted<oc::work::Attachment>(dependencies, *theStore->work(id), std::move(*plan), std::move(terminal));
  auto held = kj::heap<Held>(*this, id, kj::addRef(*container));
  auto& ref = *container;
  attached[id] = kj::mv(container);
  // By the daemon and not by who asked: what has begun is removed in order, whoever goes away.
  tasks.add(ref.live().then([this, id]() { detached(id); }));
  return ref.ready().then([held = kj::mv(held)](Refusal refusal) mutable -> Result {
    if (!refusal.reason.empty()) return refusal;
    return control::AttachPlace{{}, {}, kj::mv(held)};
  });
}

OrRefusal<control::AttachPlace> Scheduler::attachOnHost(const std::string& id) {
  auto place = execPlace(id);
  if (!place.ok()) return place.refusal();
  auto work = *theStore->work(id);
  auto* binding = config.findBinding(work.scope + "/" + work.binding);
  if (binding == nullptr) {
    return Refusal{"binding_missing", fmt::format("the config has no binding {}/{} any more", work.scope, work.binding),
                   "put it back, or cancel the Work"};
  }
  auto command = attachedCommandOnHost(config, *binding, work, options.places, options.own);
  if (!command.ok()) return command.refusal();
  // Where its agent keeps its session, for one.
  for (auto& [name, value] : binding->env) place.value().environment.emplace_back(name, value);
  attached[id] = nullptr;
  return control::AttachPlace{command.value(), place.value(), kj::heap<Held>(*this, id, kj::Own<Attachment>())};
}

// Not from here: the attachment's own promise is on the stack.
void Scheduler::detached(const std::string& id) {
  tasks.add(kj::evalLater([this, id]() {
    attached.erase(id);
    finishIfAsked(id);
    startWhatMay();
  }));
}

}  // namespace oc::work
