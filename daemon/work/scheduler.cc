#include "scheduler.h"

#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>

#include "base/aside.h"
#include "base/crypto.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "clock.h"
#include "log_redaction.h"
#include "proto/convert.h"
#include "turns.h"

namespace oc::work {

using state::Outcome;
using state::RunState;
using state::WorkState;

namespace {

// Operations that are carried out at the same time.
constexpr size_t mostCallsOfRun = 8, mostCalls = 32;
constexpr size_t maxTitle = 1024;
constexpr size_t maxBody = 16u << 20;

Refusal invalid(const std::string& what, const std::string& fix) { return {"request_invalid", what, fix}; }

Refusal noSuchRun(const std::string& id) {
  return {"not_found", fmt::format("there is no run {}", printable(id)), "open-conduit runs list"};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

}  // namespace

Scheduler::Scheduler(kj::AsyncIoContext& io, supervisor::Supervisor& supervisor, std::unique_ptr<state::Store> store,
                     config::Config configParam, SchedulerOptions optionsParam)
    : io(io),
      supervisor(supervisor),
      theStore(std::move(store)),
      config(std::move(configParam)),
      options(std::move(optionsParam)),
      workspaces(supervisor, options.places),
      containers(supervisor, options.places, options.own, options.programs),
      gateways(supervisor, containers.engines,
               [this](const std::string& socket, const std::string& name, const std::string& what) {
                 noteLeftover(socket, name, what);
               }),
      containersAhead({supervisor, options.places, options.own, [this]() -> const config::Config& { return config; },
                       containers, theCatalogue,
                       [this](const std::string& socket, const std::string& name, const std::string& what) {
                         noteLeftover(socket, name, what);
                       }}),
      callQueue(mostCallsOfRun, mostCalls),
      dependencies{supervisor,
                   *theStore,
                   workspaces,
                   options.places,
                   options.own,
                   [this]() -> const config::Config& { return config; },
                   containers,
                   gateways,
                   containersAhead,
                   [this](const std::string& socket, const std::string& run, const std::string& what) {
                     noteLeftover(socket, run, what);
                   },
                   [this](state::RunRow& run) { retryIfWorth(run); },
                   theCatalogue,
                   theOwners,
                   callQueue,
                   theHooks},
      theDoctor(supervisor, options.places, options.own, containers),
      logs(io.unixEventPort),
      startedAt(nowMs()),
      configLoadedAt(nowMs()),
      tasks(*this) {
  applySettings();
}

Scheduler::~Scheduler() noexcept(false) = default;

void Scheduler::applySettings() {
  std::map<std::string, std::vector<std::string>> passEnv;
  for (auto& [provider, settings] : config.settings.extensions) passEnv[provider] = settings.passEnv;
  supervisor.setPassEnv(std::move(passEnv));
  gateways.configure(config.settings.preparedGateways, containers.sockets(config));
  containersAhead.configure(config.settings.preparedContainers);
}

// ---- which run lives when

void Scheduler::recover() {
  Attachment::removeLeftovers(options.places);
  ContainersAhead::removeLeftovers(options.places,
                                   [this](const std::string& work) { return theStore->work(work).has_value(); });
  for (auto& run : theStore->unendedRuns()) {
    if (run.state != RunState::Queued) begin(run);
  }
  for (auto& work : theStore->allWork()) {
    if (work.state == WorkState::Finishing || work.state == WorkState::Cancelling) {
      tasks.add(finishEnding(work.id, false).ignoreResult());
    }
    finishIfAsked(work.id);
  }
  for (auto& run : theStore->unendedRuns()) {
    if (run.state == RunState::Queued) wakeFor(run);
  }
  options.onRuns(live.size());
  tasks.add(sweepEngines());
  startWhatMay();
}

// ---- Engines

// What runs of an earlier daemon may have left, on each Engine that a binding uses. A run that has not got as far as
// its agent may have had a container that was started ahead; now it makes its own.
kj::Promise<void> Scheduler::sweepEngines() {
  std::vector<std::string> keep;
  for (auto& run : theStore->unendedRuns()) {
    if (run.state != RunState::Queued && run.state != RunState::Preparing) keep.push_back(run.id);
  }
  kj::Vector<kj::Promise<void>> all;
  for (auto& socket : containers.sockets(config)) {
    auto swept = containers.engines.sweep(socket, keep).then([](std::vector<std::string> left) {
      for (auto& what : left) logWarning("left on a Docker Engine by an earlier run: {}", what);
    });
    all.add(swept.eagerlyEvaluate(nullptr));
  }
  return kj::joinPromises(all.releaseAsArray());
}

void Scheduler::noteLeftover(const std::string& socket, const std::string& run, const std::string& what) {
  bool known = leftovers.count(run) != 0;
  leftovers[run] = what;
  if (!known) tasks.add(removeLeftover(socket, run, 5 * kj::SECONDS));
}

// Again and again, slower each time: `status` shows it until it is gone.
kj::Promise<void> Scheduler::removeLeftover(std::string socket, std::string run, kj::Duration wait) {
  return io.provider->getTimer()
      .afterDelay(wait)
      .then([this, socket, run]() { return containers.engines.remove(socket, run); })
      .then([this, socket, run, wait](std::vector<std::string> left) -> kj::Promise<void> {
        if (left.empty()) {
          leftovers.erase(run);
          return kj::READY_NOW;
        }
        leftovers[run] = left.front();
        return removeLeftover(socket, run, kj::min(wait * 2, 10 * kj::MINUTES));
      });
}

void Scheduler::startWhatMay() {
  if (draining) return;
  for (auto& run : theStore->unendedRuns()) {
    if (run.state == RunState::Queued && mayStart(run)) begin(run);
  }
}

bool Scheduler::mayStart(const state::RunRow& run) {
  if (live.size() >= config.settings.maxRuns || live.count(run.id) != 0) return false;
  if (liveRunOf(run.work) != nullptr) return false;  // one at a time in a workspace
  if (attached.count(run.work) != 0) return false;   // a person is in it
  auto work = theStore->work(run.work);
  if (!work || work->state != WorkState::Open) return false;  // who ends it, ends its queued runs
  if (nowMs() < earliestStart(run)) return false;
  auto* binding = config.findBinding(work->scope + "/" + work->binding);
  if (binding == nullptr || binding->maxRuns == 0) return true;
  auto sameBinding = std::count_if(live.begin(), live.end(), [&](auto& entry) {
    auto other = theStore->work(entry.second->row().work);
    return other && other->scope == work->scope && other->binding == work->binding;
  });
  return sameBinding < static_cast<long>(binding->maxRuns);
}

void Scheduler::begin(const state::RunRow& run) {
  auto life = kj::heap<RunLife>(dependencies, run);
  auto& ref = *life;
  auto id = run.id;
  live[id] = kj::mv(life);
  options.onRuns(live.size());
  // Not from here: who asked for the run gets its answer first.
  tasks.add(kj::evalLater([&ref]() { return ref.live(); }).then([this, id]() {
    // The life's own promise is still on the stack here.
    auto life = kj::mv(live[id]);
    live.erase(id);
    tasks.add(kj::evalLater([life = kj::mv(life)]() {}));
    noteEnded(id);
  }));
}

RunLife* Scheduler::liveRunOf(const std::string& work) {
  for (auto& [id, life] : live) {
    if (life->row().work == work) return life.get();
  }
  return nullptr;
}

void Scheduler::taskFailed(kj::Exception&& exception) { logError("{}", describe(exception)); }

// ---- Work

OrRefusal<Scheduler::Described> Scheduler::describeWork(const control::WorkRequest& request,
                                                        const std::string& number) {
  if (draining) return Refusal{"draining", "the daemon is being drained and takes no new work", "start it again"};
  auto name = request.scope + "/" + request.binding;
  auto* binding = config.findBinding(name);
  if (binding == nullptr) {
    std::vector<std::string> names;
    for (auto& scope : config.scopes) {
      for (auto& one : scope.bindings) names.push_back(one.id());
    }
    auto near = closest(name, names);
    return invalid(
        "there is no binding " + printable(name),
        near.empty() ? "open-conduit config check shows the config that is read" : "did you mean " + near + "?");
  }
  if (request.title.size() > maxTitle) return invalid("the title has more than 1 KiB", "put the text into the body");
  if (hasControlCharacters(request.title) || !isUtf8(request.title)) {
    return invalid("the title has control characters or is not UTF-8", "use one line of text");
  }
  if (request.body.size() > maxBody)
    return invalid("the body has more than 16 MiB", "put large files into the repository");

  auto ahead = containersAhead.reserve(name);
  state::WorkRow work;
  state::RunRow run;
  KJ_IF_MAYBE (ids, ahead) {
    work.id = ids->work;
    run.id = ids->run;
  } else {
    work.id = newId("w-");
    run.id = newId("r-");
  }
  KJ_ON_SCOPE_FAILURE(containersAhead.unreserve(run.id));
  work.scope = request.scope;
  work.binding = request.binding;
  work.title = request.title;
  work.createdAt = nowMs();
  work.checkout = binding->checkout;
  work.workspaceMode = binding->hasResource ? binding->resourceMode : "";
  run.work = work.id;
  run.createdAt = work.createdAt;
  run.policyKind = binding->sandboxKind();
  work.branch =
      replaced(replaced(replaced(binding->branch, "{work}", work.id), "{number}", number.empty() ? work.id : number),
               "{run}", run.id);

  auto bodies = options.places.stateDir + "/bodies";
  makePrivateDirectory(bodies);
  work.bodyFile = bodies + "/" + work.id;
  writeFileAtomically(work.bodyFile, request.body);
  return Described{work, run};
}

void Scheduler::workAdded() {
  tasks.add(kj::evalLater([this]() { startWhatMay(); }));
}

void Scheduler::workDropped(const Described& described) {
  unlink(described.work.bodyFile.c_str());
  containersAhead.unreserve(described.run.id);
}

OrRefusal<control::NewWorkIds> Scheduler::newWork(control::WorkRequest request) {
  try {
    auto described = describeWork(request, "");
    if (!described.ok()) return described.refusal();
    auto& rows = described.value();
    KJ_ON_SCOPE_FAILURE(workDropped(rows));
    theStore->addWorkWithRun(rows.work, rows.run);
    workAdded();
    return control::NewWorkIds{rows.work.id, rows.run.id};
  } catch (const kj::Exception& exception) {
    return Refusal{"state_unwritable", "the Work could not be written down: " + describe(exception),
                   "make room where " + options.places.stateDir + " lies"};
  }
}

// ---- runs

kj::Promise<OrRefusal<bool>> Scheduler::waitRun(std::string id) {
  auto run = theStore->run(id);
  if (!run) return OrRefusal<bool>(noSuchRun(id));
  if (run->state == RunState::Ended) return OrRefusal<bool>(true);
  return whenEnded(id).then([]() { return OrRefusal<bool>(true); });
}

// Of a run that has not ended yet, begun or queued.
kj::Promise<void> Scheduler::whenEnded(const std::string& run) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  waitingForRun.emplace(run, kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void Scheduler::noteEnded(const std::string& run) {
  containersAhead.forget(run);
  options.onRuns(live.size());
  auto [first, last] = waitingForRun.equal_range(run);
  for (auto at = first; at != last; ++at) at->second->fulfill();
  waitingForRun.erase(first, last);
  if (auto row = theStore->run(run)) finishIfAsked(row->work);
  startWhatMay();
  if (!draining || !live.empty()) return;
  for (auto& waiting : waitingForDrain) waiting->fulfill();
  waitingForDrain.clear();
}

kj::Promise<OrRefusal<control::LogPiece>> Scheduler::readLog(std::string id, uint64_t offset, bool follow) {
  return readFileOf(id, options.places.runLog(id), offset, follow);
}

kj::Promise<OrRefusal<control::LogPiece>> Scheduler::readNetwork(std::string id, uint64_t offset, bool follow) {
  return readFileOf(id, options.places.runNetworkLog(id), offset, follow);
}

kj::Promise<OrRefusal<control::LogPiece>> Scheduler::readFileOf(std::string id, std::string path, uint64_t offset,
                                                                bool follow) {
  auto run = theStore->run(id);
  if (!run) return OrRefusal<control::LogPiece>(noSuchRun(id));
  auto bytes = logs.read(path, offset);
  bool more = bytes.bytes.size() == LogReader::MOST_BYTES;
  bytes = withoutSecrets(kj::mv(bytes), more);
  control::LogPiece piece{kj::mv(bytes.bytes), bytes.next, false};
  bool ended = run->state == RunState::Ended;
  if (!piece.bytes.empty() || ended || !follow) {
    piece.end = ended && piece.bytes.empty();
    return OrRefusal<control::LogPiece>(kj::mv(piece));
  }
  return logs.whenGrown(path, offset).exclusiveJoin(whenEnded(id)).then([this, id, path, offset]() {
    return readFileOf(id, path, offset, true);
  });
}

OrRefusal<control::PinnedPlan> Scheduler::plan(std::string id) {
  auto run = theStore->run(id);
  if (!run) return noSuchRun(id);
  auto json = theStore->plan(id);
  if (!json) {
    return Refusal{"no_plan", fmt::format("run {} ended before its policy was decided", id),
                   "open-conduit runs get " + id};
  }
  return control::PinnedPlan{*json, run->planSha256};
}

OrRefusal<bool> Scheduler::stopRun(std::string id) {
  auto found = live.find(id);
  if (found != live.end()) {
    found->second->stop(proto::StopReason::ASKED);
    return true;
  }
  auto run = theStore->run(id);
  if (!run) return noSuchRun(id);
  if (run->state == RunState::Ended) return Refusal{"run_ended", fmt::format("run {} has ended", id), ""};
  run->stopAsked = true;
  theStore->updateRun(*run);
  begin(*run);
  return true;
}

// ---- the daemon itself

kj::Promise<void> Scheduler::drain(bool stop) {
  draining = true;
  if (stop) {
    for (auto& [id, life] : live) life->stop(proto::StopReason::DRAIN);
    for (auto& [id, attachment] : attached) {
      if (attachment.get() != nullptr) attachment->end();
    }
  }
  auto closed = close();
  if (live.empty()) return closed;
  auto paf = kj::newPromiseAndFulfiller<void>();
  waitingForDrain.push_back(kj::mv(paf.fulfiller));
  return paf.promise.then([closed = kj::mv(closed)]() mutable { return kj::mv(closed); });
}

std::string Scheduler::reload() {
  auto loaded = config::loadFile(options.configPath, config::environmentOf(options.places.home));
  std::string problems;
  for (auto& diagnostic : loaded.diagnostics) problems += config::render(diagnostic, options.configPath) + "\n";
  if (!loaded.config) {
    configProblem = problems;
    logError("the config was not reloaded, the earlier one stays: {}", problems);
    return problems;
  }
  config = std::move(*loaded.config);
  configLoadedAt = nowMs();
  configProblem.clear();
  applySettings();
  if (theHooks.onReload) theHooks.onReload(config);
  logInfo("the config was reloaded");
  startWhatMay();
  return "";
}

kj::Promise<std::vector<control::DoctorLine>> Scheduler::doctor() {
  if (!theHooks.doctor) return theDoctor.examine(config);
  return theDoctor.examine(config).then([this](std::vector<control::DoctorLine> lines) {
    return theHooks.doctor().then([lines = kj::mv(lines)](std::vector<control::DoctorLine> more) mutable {
      lines.insert(lines.end(), more.begin(), more.end());
      return kj::mv(lines);
    });
  });
}

void Scheduler::fillStatus(proto::Status::Builder status) {
  status.setVersion(OPEN_CONDUIT_VERSION);
  status.setPid(getpid());
  status.setStartedAt(startedAt);
  status.setConfigPath(toText(options.configPath));
  status.setConfigLoadedAt(configLoadedAt);
  status.setConfigProblem(toText(configProblem));
  status.setDraining(draining);
  auto runs = status.initLiveRuns(live.size());
  size_t i = 0;
  for (auto& [id, life] : live) {
    auto run = runs[i++];
    run.setId(toText(id));
    run.setWork(toText(life->row().work));
    run.setState(toText(state::toWord(life->row().state)));
    run.setStartedAt(life->row().startedAt);
    run.setCreatedAt(life->row().createdAt);
    if (auto work = theStore->work(life->row().work)) {
      run.setScope(toText(work->scope));
      run.setBinding(toText(work->binding));
      run.setTitle(toText(work->title));
    }
  }
  auto unended = theStore->unendedRuns();
  status.setQueued(
      std::count_if(unended.begin(), unended.end(), [](auto& run) { return run.state == RunState::Queued; }));
  auto instances = supervisor.live();
  auto list = status.initInstances(instances.size());
  for (size_t j = 0; j < instances.size(); ++j) {
    list[j].setProvider(toText(instances[j]->provider()));
    list[j].setJob(toText(instances[j]->job()));
    list[j].setPid(instances[j]->pid());
    list[j].setState("running");
    list[j].setStartedAt(instances[j]->startedAt());
    write(list[j].initProtections(), instances[j]->protections());
  }
  std::vector<std::string> remaining;
  for (auto& [run, what] : leftovers) remaining.push_back(fmt::format("run {}: {}", run, what));
  for (auto& [run, life] : live) {
    if (life->unwritten().empty()) continue;
    remaining.push_back(fmt::format("run {}: what became of it cannot be written, make room where {} lies: {}", run,
                                    options.places.stateDir, life->unwritten()));
  }
  auto left = status.initLeftovers(remaining.size());
  for (size_t k = 0; k < remaining.size(); ++k) left.set(k, toText(remaining[k]));
  status.setPreparedGateways(static_cast<uint32_t>(gateways.waiting()));
  status.setPreparedContainers(static_cast<uint32_t>(containersAhead.waiting()));
  auto lacks = lackingProtections(instances);
  auto lackList = status.initLacks(lacks.size());
  for (size_t j = 0; j < lacks.size(); ++j) lackList.set(j, toText(lacks[j]));
}

}  // namespace oc::work
