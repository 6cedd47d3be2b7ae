// A daemon behind the control socket that keeps everything in memory. Runs begin and end when the test says so.
#pragma once

#include <fmt/format.h>
#include <kj/async.h>
#include <unistd.h>

#include <set>

#include "base/crypto.h"
#include "daemon/control/backend.h"
#include "proto/convert.h"
#include "tests/fakes/memory_store.h"

namespace oc::fakes {

class MemoryBackend : public control::Backend {
 public:
  std::set<std::string> bindings = {"demo/shell"};
  std::string configProblem, reloadDiagnostics;
  std::vector<control::DoctorLine> checks = {{"git", "ok", "2.39.5", ""}};
  std::map<std::string, std::string> logs;
  std::string lastBody;
  bool draining = false;
  std::string lastSaid, execDirectory = "/";
  bool takesMessages = true, sandboxed = false;
  // Bodies of newWork calls, waits, … that are under way.
  int waiting = 0;

  // ---- what a test does to the world

  void start(const std::string& id) {
    auto run = *rows.run(id);
    run.state = state::RunState::Running;
    run.startedAt = run.createdAt + 100;
    rows.updateRun(run);
  }
  void print(const std::string& id, std::string_view bytes) {
    logs[id] += bytes;
    wake();
  }
  void end(const std::string& id, state::Outcome outcome, int exitCode, const Refusal& why = {}) {
    auto run = *rows.run(id);
    run.state = state::RunState::Ended;
    run.outcome = outcome;
    run.exitCode = exitCode;
    run.reason = why.reason;
    run.message = why.what;
    run.fix = why.fix;
    run.endedAt = run.startedAt + 1900;
    rows.updateRun(run);
    wake();
  }
  // Makes Work with a run and says its ids.
  control::NewWorkIds add(const std::string& title, const std::string& binding = "shell") {
    return newWork({"demo", binding, title, ""}).value();
  }
  MemoryStore& memory() { return rows; }

  // ---- Backend

  void fillStatus(proto::Status::Builder status) override {
    status.setVersion("0.1.0");
    status.setPid(4711);
    status.setStartedAt(1'700'000'000'000);
    status.setConfigPath(toText(where.config()));
    status.setConfigLoadedAt(1'700'000'000'000);
    status.setConfigProblem(toText(configProblem));
    status.setDraining(draining);
    auto live = rows.unendedRuns();
    auto runs = status.initLiveRuns(live.size());
    for (size_t i = 0; i < live.size(); ++i) {
      runs[i].setId(toText(live[i].id));
      runs[i].setState(toText(state::toWord(live[i].state)));
      runs[i].setScope("demo");
      runs[i].setBinding("shell");
    }
    status.setQueued(0);
    auto instance = status.initInstances(1)[0];
    instance.setProvider("run");
    instance.setJob("r-one");
    instance.setPid(4712);
    instance.setState("ready");
    Protections protections;
    protections.noNewPrivs = protections.notDumpable = protections.seccomp = protections.landlockFiles = true;
    protections.landlockAbi = 7;
    protections.missing = {"its own network namespace: not allowed here"};
    write(instance.initProtections(), protections);
    status.initLacks(1).set(0, "user namespaces");
  }

  OrRefusal<control::NewWorkIds> newWork(control::WorkRequest request) override {
    auto name = request.scope + "/" + request.binding;
    if (!bindings.contains(name))
      return Refusal{"request_invalid", "there is no binding " + name, "name one of the config"};
    lastBody = request.body;
    ++count;
    state::WorkRow work;
    work.id = fmt::format("w-{:08}", count);
    work.scope = request.scope;
    work.binding = request.binding;
    work.title = request.title;
    work.createdAt = 1'700'000'000'000 + count;
    work.branch = "agent/" + work.id;
    work.checkout = "/home/me/code/demo";
    work.workspaceMade = true;
    state::RunRow run;
    run.id = fmt::format("r-{:08}", count);
    run.work = work.id;
    run.createdAt = work.createdAt;
    rows.addWorkWithRun(work, run);
    return control::NewWorkIds{work.id, run.id};
  }

  state::Store& store() override { return rows; }
  const Places& places() override { return where; }

  kj::Promise<OrRefusal<bool>> endWork(std::string id, bool cancel, bool) override {
    auto work = *rows.work(id);
    for (auto& run : rows.runsOf(id)) {
      if (run.state == state::RunState::Ended) continue;
      if (!cancel)
        return soon<bool>(Refusal{"work_busy", "run " + run.id + " lives", "open-conduit runs stop " + run.id});
      end(run.id, state::Outcome::Stopped, -1);
    }
    work.state = cancel ? state::WorkState::Cancelled : state::WorkState::Finished;
    work.workspaceMade = false;
    work.warnings = {".envrc"};
    rows.updateWork(work);
    return soon<bool>(true);
  }

  kj::Promise<OrRefusal<control::Said>> sayWork(std::string id, std::string text) override {
    lastSaid = text;
    for (auto& run : rows.runsOf(id)) {
      if (run.state == state::RunState::Running) return soon<control::Said>(control::Said{run.id, takesMessages});
    }
    return soon<control::Said>(control::Said{"r-next", false});
  }

  OrRefusal<control::ExecPlace> execPlace(std::string id) override {
    if (sandboxed) return Refusal{"attach_sandboxed", "Work " + id + " ran in a sandbox", ""};
    return control::ExecPlace{execDirectory, {{"OPEN_CONDUIT_WORK", id}}};
  }

  // Who holds Work, and what it was told.
  struct FakeAttachment final : public control::Attachment {
    explicit FakeAttachment(MemoryBackend& owner) : owner(owner) { ++owner.attached; }
    ~FakeAttachment() noexcept(false) { --owner.attached; }
    std::string terminal() override { return "/run/open-conduit/a-1.sock"; }
    void resize(control::TerminalSize size) override { owner.size = size; }
    kj::Promise<ProcessEnd> wait() override {
      return owner.whenChanged().then([]() { return ProcessEnd{true, false, 7}; });
    }
    MemoryBackend& owner;
  };
  int attached = 0;
  control::TerminalSize size;
  control::TerminalFacts terminalFacts;
  std::vector<std::string> hostCommand;

  kj::Promise<OrRefusal<control::AttachPlace>> attachWork(std::string id, control::TerminalFacts terminal) override {
    if (sandboxed)
      return OrRefusal<control::AttachPlace>(Refusal{"attach_sandboxed", "Work " + id + " ran in a sandbox", ""});
    terminalFacts = terminal;
    return OrRefusal<control::AttachPlace>(control::AttachPlace{
        hostCommand, {execDirectory, {{"OPEN_CONDUIT_WORK", id}}}, kj::heap<FakeAttachment>(*this)});
  }

  kj::Promise<OrRefusal<bool>> waitRun(std::string id) override {
    if (rows.run(id)->state == state::RunState::Ended) return soon<bool>(true);
    return whenChanged().then([this, id]() { return waitRun(id); });
  }

  kj::Promise<OrRefusal<control::LogPiece>> readLog(std::string run, uint64_t offset, bool follow) override {
    auto& log = logs[run];
    bool ended = rows.run(run)->state == state::RunState::Ended;
    if (follow && !ended && offset >= log.size()) {
      return whenChanged().then([this, run, offset]() { return readLog(run, offset, true); });
    }
    control::LogPiece piece;
    if (offset < log.size()) piece.bytes = log.substr(offset, 256u << 10);
    piece.next = offset + piece.bytes.size();
    piece.end = ended && piece.next >= log.size();
    return soon<control::LogPiece>(piece);
  }

  kj::Promise<OrRefusal<control::LogPiece>> readNetwork(std::string run, uint64_t offset, bool follow) override {
    return readLog(kj::mv(run), offset, follow);
  }
  OrRefusal<control::PinnedPlan> plan(std::string run) override {
    auto json = rows.plan(run);
    if (!json) return Refusal{"plan_unknown", "run " + run + " has no plan yet", ""};
    return control::PinnedPlan{*json, sha256Hex(*json)};
  }

  OrRefusal<bool> stopRun(std::string id) override {
    if (rows.run(id)->state == state::RunState::Ended) return Refusal{"run_ended", "run " + id + " has ended", ""};
    end(id, state::Outcome::Stopped, -1, {"asked", "stopped by a person", ""});
    return true;
  }

  kj::Promise<void> drain(bool stop) override {
    draining = true;
    if (stop) {
      for (auto& run : rows.unendedRuns()) end(run.id, state::Outcome::Stopped, -1);
    }
    if (rows.unendedRuns().empty()) return kj::READY_NOW;
    return whenChanged().then([this, stop]() { return drain(stop); });
  }

  std::string reload() override { return reloadDiagnostics; }

  kj::Promise<std::vector<control::DoctorLine>> doctor() override { return checks; }

 private:
  // A promise made straight of the value makes g++ 12 see an uninitialized variant.
  template <typename T>
  static kj::Promise<OrRefusal<T>> soon(OrRefusal<T> value) {
    return kj::evalLater([value = std::move(value)]() mutable { return std::move(value); });
  }
  kj::Promise<void> whenChanged() {
    auto paf = kj::newPromiseAndFulfiller<void>();
    changed.push_back(kj::mv(paf.fulfiller));
    ++waiting;
    return paf.promise.attach(kj::defer([this]() { --waiting; }));
  }
  void wake() {
    auto all = std::move(changed);
    changed.clear();
    for (auto& one : all) one->fulfill();
  }

  MemoryStore rows;
  Places where = {"/home/me", "/home/me/.config/open-conduit", "/state/open-conduit", "/data/open-conduit",
                  "/run/open-conduit"};
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> changed;
  int count = 0;
};

}  // namespace oc::fakes
