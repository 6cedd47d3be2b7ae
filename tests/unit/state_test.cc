#include "daemon/state/store.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>

#include <set>

#include "tests/unit/state_support.h"

using namespace oc;
using namespace oc::state;

namespace {

WorkRow fullWork() {
  WorkRow work = someWork("w-1");
  work.bodyFile = "bodies/w-1";
  work.state = WorkState::Cancelling;
  work.endedAt = 1700000000999;
  work.base = std::string(40, 'a');
  work.savedTip = std::string(40, 'b');
  work.savedAs = "agent/w-1-2";
  work.workspaceMade = true;
  work.title = std::string("with a zero\0byte, ünïcode and 'quotes'", 40);
  work.warnings = {"first", "", "a \"quoted\" one\nin two lines", std::string("z\0z", 3)};
  return work;
}

RunRow fullRun() {
  RunRow run = someRun("r-1", "w-1");
  run.state = RunState::Cleaning;
  run.outcome = Outcome::Refused;
  run.reason = "sandbox_denied";
  run.message = "a host is missing";
  run.fix = "grant it";
  run.exitCode = -7;
  run.startedAt = 5;
  run.endedAt = 6;
  run.attempt = 4000000000u;
  run.planSha256 = std::string(64, 'c');
  run.commits = 3;
  run.savedAs = "agent/x";
  run.notes = {"note"};
  run.shimPid = 4194304;
  run.sandboxPid = 12;
  run.lastSeq = 1ull << 62;
  run.stopAsked = true;
  return run;
}

void checkSame(const WorkRow& a, const WorkRow& b) {
  CHECK(a.id == b.id);
  CHECK(a.scope == b.scope);
  CHECK(a.binding == b.binding);
  CHECK(a.title == b.title);
  CHECK(a.bodyFile == b.bodyFile);
  CHECK(a.state == b.state);
  CHECK(a.createdAt == b.createdAt);
  CHECK(a.endedAt == b.endedAt);
  CHECK(a.checkout == b.checkout);
  CHECK(a.workspaceMode == b.workspaceMode);
  CHECK(a.branch == b.branch);
  CHECK(a.base == b.base);
  CHECK(a.savedTip == b.savedTip);
  CHECK(a.savedAs == b.savedAs);
  CHECK(a.workspaceMade == b.workspaceMade);
  CHECK(a.warnings == b.warnings);
}

void checkSame(const RunRow& a, const RunRow& b) {
  CHECK(a.id == b.id);
  CHECK(a.work == b.work);
  CHECK(a.state == b.state);
  CHECK(a.outcome == b.outcome);
  CHECK(a.reason == b.reason);
  CHECK(a.message == b.message);
  CHECK(a.fix == b.fix);
  CHECK(a.exitCode == b.exitCode);
  CHECK(a.createdAt == b.createdAt);
  CHECK(a.startedAt == b.startedAt);
  CHECK(a.endedAt == b.endedAt);
  CHECK(a.attempt == b.attempt);
  CHECK(a.policyKind == b.policyKind);
  CHECK(a.planSha256 == b.planSha256);
  CHECK(a.commits == b.commits);
  CHECK(a.savedAs == b.savedAs);
  CHECK(a.notes == b.notes);
  CHECK(a.shimPid == b.shimPid);
  CHECK(a.sandboxPid == b.sandboxPid);
  CHECK(a.lastSeq == b.lastSeq);
  CHECK(a.stopAsked == b.stopAsked);
}

std::vector<std::string> ids(const std::vector<RunRow>& runs) {
  std::vector<std::string> result;
  for (const auto& run : runs) result.push_back(run.id);
  return result;
}

using Ids = std::vector<std::string>;

bool anyFileHas(const Scratch& scratch, std::string_view bytes) {
  for (const char* name : {"state.db", "state.db-wal"}) {
    if (access((scratch / name).c_str(), F_OK) != 0) continue;
    if (readFile(scratch / name, 1 << 24).find(bytes) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

// ---- rows

TEST_CASE("Work comes back as it was stored, also by the next daemon") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWork(fullWork());
  checkSame(*store->work("w-1"), fullWork());
  CHECK_FALSE(store->work("w-2"));
  store = nullptr;
  checkSame(*mustOpen(scratch.database())->work("w-1"), fullWork());
}

TEST_CASE("updating Work changes everything but what it is") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWork(someWork("w-1"));
  store->addWork(someWork("w-2"));
  WorkRow changed = fullWork();
  changed.scope = "other", changed.binding = "other", changed.createdAt = 1;
  store->updateWork(changed);
  checkSame(*store->work("w-1"), fullWork());
  checkSame(*store->work("w-2"), someWork("w-2"));
  CHECK_THROWS_WITH(store->updateWork(someWork("w-3")), hasText("no such Work"));
}

TEST_CASE("a run comes back as it was stored, also by the next daemon") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWork(someWork("w-1"));
  store->addRun(fullRun());
  checkSame(*store->run("r-1"), fullRun());
  CHECK_FALSE(store->run("r-2"));
  store = nullptr;
  checkSame(*mustOpen(scratch.database())->run("r-1"), fullRun());
}

TEST_CASE("updating a run changes everything but what it is") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWork(someWork("w-1"));
  store->addWork(someWork("w-2"));
  store->addRun(someRun("r-1", "w-1"));
  store->addRun(someRun("r-2", "w-1"));
  RunRow changed = fullRun();
  changed.work = "w-2", changed.createdAt = 1;
  store->updateRun(changed);
  checkSame(*store->run("r-1"), fullRun());
  checkSame(*store->run("r-2"), someRun("r-2", "w-1"));
  CHECK_THROWS_WITH(store->updateRun(someRun("r-3", "w-1")), hasText("no such run"));
}

TEST_CASE("every state and outcome has a word and can be stored") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  WorkRow work = someWork("w-1");
  RunRow run = someRun("r-1", "w-1");
  store->addWorkWithRun(work, run);
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(WorkState::Cancelled); ++i) {
    work.state = static_cast<WorkState>(i);
    store->updateWork(work);
    CHECK(store->work("w-1")->state == work.state);
    words.insert(toWord(work.state));
  }
  CHECK(words == std::set<std::string>{"open", "finishing", "cancelling", "finished", "cancelled"});
  words.clear();
  for (int i = 0; i <= static_cast<int>(RunState::Ended); ++i) {
    run.state = static_cast<RunState>(i);
    store->updateRun(run);
    CHECK(store->run("r-1")->state == run.state);
    words.insert(toWord(run.state));
  }
  CHECK(words == std::set<std::string>{"queued", "preparing", "running", "saving", "cleaning", "ended"});
  words.clear();
  for (int i = 0; i <= static_cast<int>(Outcome::Interrupted); ++i) {
    run.outcome = static_cast<Outcome>(i);
    store->updateRun(run);
    CHECK(store->run("r-1")->outcome == run.outcome);
    words.insert(toWord(run.outcome));
  }
  CHECK(words == std::set<std::string>{"none", "succeeded", "failed", "refused", "stopped", "interrupted"});
  CHECK_THROWS(toWord(static_cast<RunState>(6)));
}

TEST_CASE("an identifier is given once") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  CHECK_THROWS_WITH(store->addWork(someWork("w-1")), hasText("UNIQUE"));
  CHECK_THROWS_WITH(store->addRun(someRun("r-1", "w-1")), hasText("UNIQUE"));
  CHECK(store->allWork().size() == 1);
  CHECK(store->recentRuns(10).size() == 1);
}

TEST_CASE("a run belongs to Work that is there") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  CHECK_THROWS_WITH(store->addRun(someRun("r-1", "w-1")), hasText("FOREIGN KEY"));
  store->addWork(someWork("w-1"));
  store->addRun(someRun("r-1", "w-1"));
  CHECK(store->run("r-1"));
}

TEST_CASE("Work and its first run are added both or not at all") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  CHECK(store->work("w-1"));
  CHECK(store->run("r-1"));
  CHECK_THROWS(store->addWorkWithRun(someWork("w-2"), someRun("r-1", "w-2")));
  CHECK_FALSE(store->work("w-2"));
  CHECK_THROWS(store->addWorkWithRun(someWork("w-2"), someRun("r-2", "w-1")));
  CHECK_FALSE(store->work("w-2"));
  store->addWorkWithRun(someWork("w-2"), someRun("r-2", "w-2"));
  CHECK(store->run("r-2"));
}

TEST_CASE("lists keep the order of arrival, whatever the clock said") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  int64_t clock = 1000;
  for (const char* id : {"b", "c", "a"}) {
    auto work = someWork(std::string("w-") + id);
    work.createdAt = clock--;
    store->addWork(work);
    for (const char* number : {"2", "1"}) {
      auto run = someRun(std::string("r-") + id + number, work.id);
      run.createdAt = clock--;
      if (*number == '1') run.state = RunState::Ended;
      store->addRun(run);
    }
  }
  Ids work;
  for (const auto& row : store->allWork()) work.push_back(row.id);
  CHECK(work == Ids{"w-a", "w-c", "w-b"});
  CHECK(store->recentWork(2).size() == 2);
  CHECK(store->recentWork(2)[1].id == "w-c");
  CHECK(store->countWork() == 3);
  CHECK(store->countRuns() == 6);
  CHECK(ids(store->runsOf("w-c")) == Ids{"r-c2", "r-c1"});
  CHECK(ids(store->runsOf("w-none")).empty());
  CHECK(ids(store->recentRuns(3)) == Ids{"r-a1", "r-a2", "r-c1"});
  CHECK(store->recentRuns(0).empty());
  CHECK(store->recentRuns(SIZE_MAX).size() == 6);
  CHECK(ids(store->unendedRuns()) == Ids{"r-b2", "r-c2", "r-a2"});

  auto ended = *store->run("r-c2");
  ended.state = RunState::Ended;
  store->updateRun(ended);
  CHECK(ids(store->unendedRuns()) == Ids{"r-b2", "r-a2"});
}

TEST_CASE("a warning that is no UTF-8 is stored readable rather than refused") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  auto work = someWork("w-1");
  work.warnings = {"a file named \xff\xfe"};
  store->addWork(work);
  CHECK(store->work("w-1")->warnings == std::vector<std::string>{"a file named \xef\xbf\xbd\xef\xbf\xbd"});
}

TEST_CASE("a number that the database cannot hold is refused, not changed") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  auto run = *store->run("r-1");
  run.lastSeq = UINT64_MAX;
  CHECK_THROWS_WITH(store->updateRun(run), hasText("too large"));
  run.lastSeq = INT64_MAX;
  store->updateRun(run);
  CHECK(store->run("r-1")->lastSeq == INT64_MAX);
}

// ---- plans, keys, the journal

TEST_CASE("B19 a plan is pinned once and is read as it was pinned") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  const std::string plan = R"({"image":"x@sha256:00"})";
  CHECK_FALSE(store->plan("r-1"));
  CHECK_THROWS_WITH(store->pinPlan("r-1", plan, sha256Hex("other")), hasText("hash"));
  CHECK_FALSE(store->plan("r-1"));
  store->pinPlan("r-1", plan, sha256Hex(plan));
  CHECK(*store->plan("r-1") == plan);
  CHECK_THROWS_WITH(store->pinPlan("r-1", "{}", sha256Hex("{}")), hasText("UNIQUE"));
  CHECK(*store->plan("r-1") == plan);
  CHECK_THROWS_WITH(store->pinPlan("r-2", "{}", sha256Hex("{}")), hasText("FOREIGN KEY"));
  // One that never began is decided anew.
  store->dropPlan("r-1");
  CHECK_FALSE(store->plan("r-1"));
  store->pinPlan("r-1", "{}", sha256Hex("{}"));
  CHECK(*store->plan("r-1") == "{}");
}

TEST_CASE("B20 a plan that was changed in the database is not given out") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  store->pinPlan("r-1", R"({"network":[]})", sha256Hex(R"({"network":[]})"));
  byHand(scratch).exec(R"(UPDATE plans SET json = '{"network":["*"]}')");
  CHECK_THROWS_WITH(store->plan("r-1"), hasText("not the one that was pinned"));
}

TEST_CASE("a run's key is kept until it is dropped, and then is nowhere in the files") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  store->addRun(someRun("r-2", "w-1"));
  auto key = SecretBytes::random(32), other = SecretBytes::random(32);
  CHECK_FALSE(store->runKey("r-1"));
  CHECK_THROWS_WITH(store->setRunKey("r-1", SecretBytes("short")), hasText("32 bytes"));
  store->setRunKey("r-1", other);
  store->setRunKey("r-1", key);
  store->setRunKey("r-2", other);
  CHECK(store->runKey("r-1")->view() == key.view());
  CHECK(anyFileHas(scratch, key.view()));  // what is looked for can be found

  store->dropRunKey("r-1");
  CHECK_FALSE(store->runKey("r-1"));
  CHECK_FALSE(anyFileHas(scratch, key.view()));
  CHECK(store->runKey("r-2")->view() == other.view());
  store->dropRunKey("r-1");
  store->dropRunKey("r-none");
}

TEST_CASE("a key is dropped although somebody reads the database; its traces go with a later one") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  store->addRun(someRun("r-2", "w-1"));
  auto key = SecretBytes::random(32);
  store->setRunKey("r-1", key);
  store->setRunKey("r-2", SecretBytes::random(32));
  {
    auto reader = byHand(scratch);
    reader.exec("BEGIN");
    reader.execAndGet("SELECT count(*) FROM runs").getInt();
    store->dropRunKey("r-1");
    CHECK_FALSE(store->runKey("r-1"));
    reader.exec("COMMIT");
  }
  store->dropRunKey("r-2");
  CHECK_FALSE(anyFileHas(scratch, key.view()));
}
