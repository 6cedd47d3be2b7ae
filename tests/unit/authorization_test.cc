// Which operations a run gets, and what its capability does.
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/toolbelt/operations.h"
#include "daemon/toolbelt/run_toolbelt.h"
#include "proto/convert.h"
#include "tests/catch.h"
#include "tests/fakes/memory_store.h"

namespace oc {
namespace {

using namespace toolbelt;

std::vector<std::string> namesOf(const Authorized& authorized) {
  std::vector<std::string> names;
  for (auto& operation : authorized.offered) names.push_back(operation.name);
  return names;
}

TEST_CASE("D4 an operation is offered when both list it, by its name or its toolset") {
  Catalogue catalogue;
  using Names = std::vector<std::string>;
  CHECK(namesOf(authorize(catalogue, {{"@conduit.work"}, {"@conduit.work"}})) ==
        Names{"conduit.work.finish", "conduit.work.get", "conduit.work.note"});
  CHECK(namesOf(authorize(catalogue, {{"@conduit.work"}, {"conduit.work.get"}})) == Names{"conduit.work.get"});
  CHECK(namesOf(authorize(catalogue, {{"conduit.work.note"}, {"@conduit.work"}})) == Names{"conduit.work.note"});
  CHECK(namesOf(authorize(catalogue, {{"conduit.work.note"}, {"conduit.work.get"}})).empty());
  CHECK(namesOf(authorize(catalogue, {{"@conduit.work"}, {}})).empty());
  CHECK(namesOf(authorize(catalogue, {{}, {"@conduit.work"}})).empty());
}

TEST_CASE("D4 a denial says which of the two is missing") {
  Catalogue catalogue;
  CHECK(whyNot(catalogue, {{"@conduit.work"}, {"@conduit.work"}}, "conduit.work.get").reason.empty());
  auto noScope = whyNot(catalogue, {{"@conduit.work"}, {}}, "conduit.work.get");
  CHECK(noScope.reason == "operation_denied");
  CHECK_THAT(noScope.what, hasText("its scope's authorization does not list it"));
  CHECK_THAT(noScope.fix, hasText("the scope's authorization.operations"));
  CHECK_THAT(whyNot(catalogue, {{}, {"@conduit.work"}}, "conduit.work.get").what,
             hasText("the binding does not list it"));
  CHECK_THAT(whyNot(catalogue, {{}, {}}, "conduit.work.get").what, hasText("neither"));
  auto authorized = authorize(catalogue, {{"@conduit.work"}, {"conduit.work.get"}});
  CHECK(authorized.denied.size() == 2);
  CHECK(whyNot(catalogue, {{"a.b"}, {"a.b"}}, "a.b").reason == "operation_unknown");
  // Names are compared byte by byte.
  for (auto name : {"conduit.work.Get", "conduit.work.get ", "conduit.work.g\xd0\xb5t", "conduit.work"}) {
    CHECK(whyNot(catalogue, {{"@conduit.work"}, {"@conduit.work"}}, name).reason == "operation_denied");
  }
}

TEST_CASE("D4 other parts' operations come in by data, and a name twice is a mistake") {
  Catalogue catalogue;
  catalogue.add({"github.git.credential", "", R"({"type":"object"})", {"@github.workspace"}, true});
  auto authorized = authorize(catalogue, {{"@github.workspace"}, {"@github.workspace"}});
  REQUIRE(authorized.offered.size() == 1);
  CHECK(authorized.offered[0].hidden);
  CHECK_THROWS_AS(catalogue.add({"conduit.work.get", "", "{}", {}, false}), kj::Exception);
}

// ---- turns

TEST_CASE("who has many calls waiting does not keep another run from its turn") {
  auto io = kj::setupAsyncIo();
  FairQueue queue(8, 8);
  std::vector<std::string> order;
  std::vector<kj::Promise<void>> jobs;
  auto job = [&](const std::string& key) {
    jobs.push_back(queue.turn(key)
                       .then([&, key](kj::Own<FairQueue::Turn> turn) {
                         order.push_back(key);
                         return io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).attach(kj::mv(turn));
                       })
                       .eagerlyEvaluate(nullptr));
  };
  for (int i = 0; i < 64; ++i) job("many");
  for (int i = 0; i < 4; ++i) job("few");
  for (auto& one : jobs) one.wait(io.waitScope);
  CHECK(order.size() == 68);
  // Eight of the first were under way; then they take turns.
  CHECK(std::count(order.begin(), order.begin() + 18, "few") == 4);
}

TEST_CASE("one run has at most its share at a time, and a place that is given up is free") {
  auto io = kj::setupAsyncIo();
  FairQueue queue(2, 8);
  std::vector<kj::Own<FairQueue::Turn>> turns;
  std::vector<kj::Promise<void>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(queue.turn("a")
                          .then([&](kj::Own<FairQueue::Turn> turn) { turns.push_back(kj::mv(turn)); })
                          .eagerlyEvaluate(nullptr));
  }
  kj::evalLater([]() {}).wait(io.waitScope);
  CHECK(turns.size() == 2);
  waiting.erase(waiting.begin() + 2);  // the third does not want it any more
  turns.clear();
  kj::evalLater([]() {}).wait(io.waitScope);
  CHECK(turns.size() == 2);
  turns.clear();
}

// ---- the capability

class Access final : public WorkAccess {
 public:
  explicit Access(fakes::MemoryStore& store) : store(store) {
    row.id = "w-1";
    row.title = "A title";
    store.addWork(row);
  }
  const state::WorkRow& workRow() const override { return row; }
  const std::string& runId() const override { return run; }
  void addWorkNote(const std::string& text) override { store.addNote(row.id, {run, 1, text}); }
  void askFinish() override { row.finishAsked = true; }

  fakes::MemoryStore& store;
  state::WorkRow row;
  std::string run = "r-2";
};

class Owner final : public OperationOwner {
 public:
  kj::Promise<OrRefusal<OperationResult>> call(const std::string& work, const std::string& run,
                                               const std::string& operation, const std::string& arguments,
                                               const CallId&) override {
    calls.push_back(work + " " + run + " " + operation + " " + arguments);
    if (holds) return kj::NEVER_DONE;
    if (breaks) KJ_FAIL_REQUIRE("the secret is /etc/passwd");
    return OrRefusal<OperationResult>(OperationResult{std::string(size, 'x'), false});
  }
  void credentialRejected(const std::string&, const std::string& run) override { rejected.push_back(run); }
  kj::Promise<OrRefusal<GitCredential>> credential(const std::string&, const std::string&, const std::string&,
                                                   const std::string& host, const std::string&) override {
    if (host != "github.com") return OrRefusal<GitCredential>(Refusal{"credential_refused", "not this one", ""});
    return OrRefusal<GitCredential>(GitCredential{"x-access-token", SecretBytes("a-password")});
  }
  void runEnded(const std::string&, const std::string& run) override { ended.push_back(run); }

  bool holds = false, breaks = false;
  size_t size = 3;
  std::vector<std::string> calls, ended, rejected;
};

struct CapabilityWorld {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  fakes::MemoryStore store;
  Owners owners;
  FairQueue queue{8, 32};
  Owner owner;
  Access access{store};
  kj::Own<RunToolbelt> toolbelt;

  explicit CapabilityWorld(const std::vector<std::string>& operations) {
    owners.add("github.", owner);
    toolbelt = kj::heap<RunToolbelt>(Shared{store, owners, queue}, access, operations);
  }
  std::string reason(auto&& request) { return toString(request.send().wait(io.waitScope).getRefusal().getReason()); }
  std::string call(const std::string& operation, const std::string& arguments = "{}") {
    auto request = toolbelt->capability().callRequest();
    request.setOperation(toText(operation));
    request.setArguments(toData(arguments));
    return reason(kj::mv(request));
  }
  std::string note(const std::string& text) {
    auto request = toolbelt->capability().addNoteRequest();
    request.setText(toText(text));
    return reason(kj::mv(request));
  }
};

TEST_CASE("D4 a shim that was taken over gets nothing but the run's operations") {
  CapabilityWorld world({"github.issue.comment"});
  CHECK(world.call("github.issue.comment", R"({"a":1})") == "");
  CHECK(world.owner.calls == std::vector<std::string>{R"(w-1 r-2 github.issue.comment {"a":1})"});
  for (auto name :
       {"github.issue.close", "github.git.credential", "conduit.work.get", "", "github.issue.comment ", "github."}) {
    CHECK(world.call(name) == "operation_denied");
  }
  auto toolbelt = world.toolbelt->capability();
  CHECK(world.reason(toolbelt.getWorkRequest()) == "operation_denied");
  CHECK(world.reason(toolbelt.finishWorkRequest()) == "operation_denied");
  CHECK(world.reason(toolbelt.gitCredentialRequest()) == "operation_denied");
  CHECK(world.call("github.git.credential.rejected") == "operation_denied");
  CHECK(world.owner.rejected.empty());
  CHECK(world.note("x") == "operation_denied");
  CHECK(world.store.notes("w-1", 10).empty());
  CHECK_FALSE(world.access.row.finishAsked);
  CHECK(world.call("github.issue.comment", std::string(257u << 10, 'x')) == "arguments_invalid");
}

TEST_CASE("B14 the credential is no operation that can be called") {
  CapabilityWorld world({"github.git.credential"});
  CHECK(world.call("github.git.credential") == "operation_denied");
  CHECK(world.owner.calls.empty());
  auto request = world.toolbelt->capability().gitCredentialRequest();
  request.setHost("github.com");
  CHECK(toString(request.send().wait(world.io.waitScope).getPassword()) == "a-password");
  auto other = world.toolbelt->capability().gitCredentialRequest();
  other.setHost("evil.example");
  CHECK(world.reason(kj::mv(other)) == "credential_refused");
  // git was refused with it.
  CHECK(world.call("github.git.credential.rejected") == "");
  CHECK(world.owner.rejected == std::vector<std::string>{"r-2"});
  auto huge = world.toolbelt->capability().gitCredentialRequest();
  huge.setHost(toText(std::string(10'000, 'x')));
  CHECK(world.reason(kj::mv(huge)) == "credential_refused");
}

TEST_CASE("D4 what nobody carries out is said to be unavailable, and what breaks tells the agent nothing of why") {
  CapabilityWorld world({"other.thing", "github.x"});
  CHECK(world.call("other.thing") == "operation_unavailable");
  world.owner.breaks = true;
  auto request = world.toolbelt->capability().callRequest();
  request.setOperation("github.x");
  auto refusal = read(request.send().wait(world.io.waitScope).getRefusal());
  CHECK(refusal.reason == "operation_failed");
  CHECK(refusal.what.find("passwd") == std::string::npos);
  world.owner.breaks = false;
  world.owner.size = 300u << 10;
  CHECK(world.call("github.x") == "result_too_large");
}

TEST_CASE("notes are kept with the Work, bounded, and made fit to be shown") {
  CapabilityWorld world({"conduit.work.note", "conduit.work.finish"});
  CHECK(world.note("One\nline \x1b[31m") == "");
  CHECK(world.store.notes("w-1", 10)[0].text.find('\x1b') == std::string::npos);
  CHECK(world.note("") == "arguments_invalid");
  CHECK(world.note(std::string(5000, 'x')) == "arguments_invalid");
  for (int i = 1; i < 100; ++i) CHECK(world.note("more") == "");
  CHECK(world.note("one too many") == "too_many_notes");
  // Also for the daemon that comes after this one.
  world.toolbelt = kj::heap<RunToolbelt>(Shared{world.store, world.owners, world.queue}, world.access,
                                         std::vector<std::string>{"conduit.work.note"});
  CHECK(world.note("one too many") == "too_many_notes");
  CHECK(world.store.notes("w-1", 1000).size() == 100);
}

TEST_CASE("the Work is told with its earlier runs and the beginning of a large body") {
  CapabilityWorld world({"conduit.work.get"});
  char path[] = "/tmp/oc-body-XXXXXX";
  kj::AutoCloseFd file(mkstemp(path));
  writeAll(file.get(), std::string(300u << 10, 'b'));
  world.access.row.bodyFile = path;
  for (int i = 0; i < 30; ++i) {
    state::RunRow run;
    run.id = "r-1" + std::to_string(i);
    run.work = "w-1";
    run.outcome = state::Outcome::Failed;
    run.message = std::string(5000, 'm');
    world.store.addRun(run);
  }
  auto response = world.toolbelt->capability().getWorkRequest().send().wait(world.io.waitScope);
  auto work = response.getWork();
  CHECK(work.getBody().size() == 128u << 10);
  CHECK(work.getBodyCut());
  CHECK(work.getRuns().size() == 20);
  CHECK(toString(work.getRuns()[19].getId()) == "r-129");
  CHECK(work.getRuns()[0].getMessage().size() <= 1024);
  unlink(path);
}

TEST_CASE("D5 a call that outlives its run is ended, its capability is worth nothing, and owners are told once") {
  CapabilityWorld world({"github.x", "github.y", "conduit.work.get"});
  world.owner.holds = true;
  auto capability = world.toolbelt->capability();
  auto request = capability.callRequest();
  request.setOperation("github.x");
  auto pending = request.send();
  kj::evalLater([]() {}).wait(world.io.waitScope);
  world.toolbelt->revoke();
  CHECK(toString(pending.wait(world.io.waitScope).getRefusal().getReason()) == "run_ended");
  CHECK(world.reason(capability.getWorkRequest()) == "run_ended");
  world.toolbelt = nullptr;
  CHECK(world.reason(capability.getWorkRequest()) == "run_ended");
  CHECK(world.owner.ended == std::vector<std::string>{"r-2"});
}

TEST_CASE("a shim that lets thousands of calls wait is told to stop") {
  CapabilityWorld world({"github.x"});
  world.owner.holds = true;
  auto capability = world.toolbelt->capability();
  std::vector<kj::Promise<std::string>> pending;
  for (int i = 0; i < 300; ++i) {
    auto request = capability.callRequest();
    request.setOperation("github.x");
    pending.push_back(request.send()
                          .then([](auto&& response) { return toString(response.getRefusal().getReason()); })
                          .eagerlyEvaluate(nullptr));
  }
  CHECK(pending.back().wait(world.io.waitScope) == "too_many_calls");
  CHECK(world.owner.calls.size() == 8);
}

}  // namespace
}  // namespace oc
