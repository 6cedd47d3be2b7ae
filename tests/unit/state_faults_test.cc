// The state database and what happens to machines: killed writers, full disks, damaged files, years of runs.
#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/unit/state_support.h"

using namespace oc;
using namespace oc::state;

namespace {

// Counts the steps that SQLite's machine takes, in every database that is opened while it lives: work, whatever else
// the computer is doing.
class WorkCounter {
 public:
  WorkCounter() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(watch)); }
  ~WorkCounter() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(watch)); }

  template <typename Action>
  uint64_t of(Action&& action) {
    steps = 0;
    action();
    return steps;
  }

 private:
  static int watch(sqlite3* database, char**, const void*) {
    sqlite3_progress_handler(
        database, 1, [](void*) { return ++steps, 0; }, nullptr);
    return 0;
  }
  static inline uint64_t steps = 0;
};

std::string numbered(const char* prefix, uint32_t number) { return prefix + std::to_string(number); }

// One round of what a daemon writes for a run, from its arrival to its end.
void writeRun(Store& store, uint32_t number) {
  auto work = someWork(numbered("w-", number));
  auto run = someRun(numbered("r-", number), work.id);
  work.warnings = {std::string(number % 3000, 'w')};  // rows of many lengths: pages split and overflow
  store.addWorkWithRun(work, run);
  auto plan = R"({"n":)" + std::to_string(number) + "}";
  store.pinPlan(run.id, plan, sha256Hex(plan));
  store.setRunKey(run.id, SecretBytes(std::string(32, static_cast<char>(number))));
  run.state = RunState::Running;
  store.updateRun(run);
  if (number % 4 == 0) store.dropRunKey(run.id);
  run.state = RunState::Ended;
  run.outcome = Outcome::Succeeded;
  run.lastSeq = number;
  store.updateRun(run);
}

void checkRun(Store& store, uint32_t number) {
  auto run = store.run(numbered("r-", number));
  REQUIRE(run);
  CHECK(run->state == RunState::Ended);
  CHECK(run->lastSeq == number);
  auto work = store.work(run->work);
  REQUIRE(work);
  CHECK(work->warnings.at(0).size() == number % 3000);
  CHECK(store.plan(run->id).value_or("") == R"({"n":)" + std::to_string(number) + "}");
  auto key = store.runKey(run->id);
  CHECK(key.has_value() == (number % 4 != 0));
  if (key) CHECK(key->view() == std::string(32, static_cast<char>(number)));
}

// In a child: writes runs until it is killed, and says each number once that run is wholly written.
[[noreturn]] void writeUntilKilled(const std::string& database, uint32_t first, int acknowledge) {
  auto store = Store::open(database);
  if (!store) _exit(1);
  for (uint32_t number = first;; ++number) {
    writeRun(*store.value(), number);
    writeAll(acknowledge, std::string_view(reinterpret_cast<const char*>(&number), sizeof(number)));
  }
}

// Reads what the writer says: `count` numbers, or to the end. The last of them; `none` when there was none.
uint32_t lastAcknowledged(int pipe, uint32_t count, uint32_t none) {
  uint32_t number, last = none;
  for (; count > 0; --count) {
    ssize_t n;
    KJ_SYSCALL(n = read(pipe, &number, sizeof(number)));
    if (n == 0) break;
    KJ_REQUIRE(n == sizeof(number));  // written in one piece, far below PIPE_BUF
    last = number;
  }
  return last;
}

void copyFile(const std::string& from, const std::string& to) { writeFileAtomically(to, readFile(from, 1 << 26)); }

// Calls everything. What comes back does not matter, only that something does.
void useAll(Store& store) {
  auto attempt = [](auto&& call) {
    try {
      call();
    } catch (const kj::Exception&) {
      // A refusal to go on with what is damaged.
    }
  };
  attempt([&]() { store.allWork(); });
  attempt([&]() { store.recentRuns(1000); });
  attempt([&]() { store.unendedRuns(); });
  attempt([&]() { store.integrity(); });
  for (uint32_t number : {1u, 2u, 17u, 40u}) {
    auto id = numbered("r-", number);
    attempt([&]() { store.run(id); });
    attempt([&]() { store.work(numbered("w-", number)); });
    attempt([&]() { store.runsOf(numbered("w-", number)); });
    attempt([&]() { store.plan(id); });
    attempt([&]() { store.runKey(id); });
    attempt([&]() { store.dropRunKey(id); });
  }
  attempt([&]() { writeRun(store, 1000); });
}

struct Tally {
  int refused = 0, opened = 0;
};

// Flips bytes of the file with this suffix, a hundred times anew, and lets a daemon loose on it.
Tally openDamaged(const std::string& suffix, uint32_t seed) {
  Scratch scratch;
  {
    auto store = mustOpen(scratch / "good.db");
    for (uint32_t number = 1; number <= 40; ++number) writeRun(*store, number);
    // Copied while it is open, so that there is a log; closing would fold it into the file.
    for (const char* part : {"", "-wal"})
      copyFile(scratch / ("good.db" + std::string(part)), scratch / ("copy" + std::string(part)));
  }
  std::mt19937 random(seed);
  Tally tally;
  for (int round = 0; round < 300; ++round) {
    for (const char* part : {"", "-wal"}) copyFile(scratch / ("copy" + std::string(part)), scratch.database() + part);
    unlink((scratch.database() + "-shm").c_str());
    auto bytes = readFile(scratch.database() + suffix, 1 << 26);
    REQUIRE(bytes.size() > 1000);
    // Near the beginning, where the header and the schema are, in half of the rounds.
    size_t reach = round % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 4096);
    for (uint32_t flips = 1 + random() % 8; flips > 0; --flips) bytes[random() % reach] ^= 1 << random() % 8;
    if (round % 10 == 9) bytes.resize(random() % bytes.size());
    writeFileAtomically(scratch.database() + suffix, bytes);
    INFO("seed " << seed << ", round " << round);
    auto opened = Store::open(scratch.database());
    if (opened) {
      ++tally.opened;
      useAll(*opened.value());
    } else {
      ++tally.refused;
      // The number of its version is among the bytes.
      CHECK((opened.refusal().reason == "state_damaged" || opened.refusal().reason == "state_newer"));
      CHECK_FALSE(opened.refusal().fix.empty());
    }
  }
  return tally;
}

void limitFileSize(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);  // then write fails with EFBIG, as it fails with ENOSPC on a full disk
  struct rlimit limit;
  KJ_SYSCALL(getrlimit(RLIMIT_FSIZE, &limit));
  limit.rlim_cur = bytes;
  KJ_SYSCALL(setrlimit(RLIMIT_FSIZE, &limit));
}

}  // namespace

TEST_CASE("a daemon that is killed while it writes loses nothing that it was told is written") {
  Scratch scratch;
  uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  uint32_t next = 1;
  for (int round = 0; round < 25; ++round) {
    INFO("seed " << seed << ", round " << round);
    auto pipe = makePipe();
    pid_t child;
    KJ_SYSCALL(child = fork());
    if (child == 0) {
      try {
        writeUntilKilled(scratch.database(), next, pipe.second.get());
      } catch (const kj::Exception& e) {
        fprintf(stderr, "%s\n", e.getDescription().cStr());
        _exit(1);
      }
    }
    pipe.second = nullptr;
    auto last = lastAcknowledged(pipe.first.get(), random() % 12, next - 1);
    usleep(random() % 4000);
    KJ_SYSCALL(kill(child, SIGKILL));
    last = lastAcknowledged(pipe.first.get(), UINT32_MAX, last);
    int status;
    KJ_SYSCALL(waitpid(child, &status, 0));
    REQUIRE(WIFSIGNALED(status));

    auto store = mustOpen(scratch.database());
    CHECK(store->integrity() == "ok");
    for (uint32_t number = next; number <= last; ++number) checkRun(*store, number);
    // Of the one that it was at, what there is fits together.
    auto unfinished = store->run(numbered("r-", last + 1));
    if (unfinished) {
      CHECK(store->work(unfinished->work));
      unfinished->state = RunState::Ended;
      store->updateRun(*unfinished);
    }
    next = last + 2;
  }
  CHECK(next > 2 * 25 + 1);  // it did get to write
}

TEST_CASE("a full disk fails a write as a whole, and the next one succeeds when there is room again") {
  Scratch scratch;
  auto said = inChild([&]() -> std::string {
    auto store = mustOpen(scratch.database());
    uint32_t number = 1;
    for (; number <= 5; ++number) writeRun(*store, number);
    limitFileSize(200000);
    std::string failure;
    try {
      for (; number < 10000; ++number) writeRun(*store, number);
    } catch (const kj::Exception& e) {
      failure = e.getDescription().cStr();
    }
    if (failure.find("state database failed") == std::string::npos) return "not the failure expected: " + failure;
    // What is there can be read, and everything that was acknowledged is.
    for (uint32_t done = 1; done < number; ++done) {
      if (!store->run(numbered("r-", done))) return "a run is missing";
      if (store->run(numbered("r-", done))->state != RunState::Ended) return "a run is not as it was written";
    }
    for (const auto& run : store->recentRuns(100000)) {
      if (!store->work(run.work)) return "half of a transaction is there";
    }
    if (store->integrity() != "ok") return store->integrity();
    limitFileSize(RLIM_INFINITY);
    writeRun(*store, number + 1);
    return store->integrity();
  });
  CHECK(said == "ok");
  CHECK(mustOpen(scratch.database())->integrity() == "ok");
}

TEST_CASE("a disk that is full from the start refuses, and does not harm what is there") {
  Scratch scratch;
  auto openLimited = [&](rlim_t limit) {
    return inChild([&]() -> std::string {
      limitFileSize(limit);
      auto opened = Store::open(scratch.database());
      return opened ? "opened" : opened.refusal().reason + " " + opened.refusal().fix;
    });
  };
  for (rlim_t limit : {0, 100, 5000, 20000}) CHECK_THAT(openLimited(limit), beginsWith("state_unwritable "));
  CHECK(openLimited(RLIM_INFINITY) == "opened");
  {
    auto store = mustOpen(scratch.database());
    for (uint32_t number = 1; number <= 20; ++number) writeRun(*store, number);
  }
  CHECK_THAT(openLimited(0), beginsWith("state_unwritable "));
  auto store = mustOpen(scratch.database());
  for (uint32_t number = 1; number <= 20; ++number) checkRun(*store, number);
}

TEST_CASE("a database with flipped bytes is refused or read, and never ends the daemon") {
  auto tally = openDamaged("", std::random_device()());
  CHECK(tally.refused > 50);
}

TEST_CASE("a log with flipped bytes is refused or read, and never ends the daemon") {
  auto tally = openDamaged("-wal", std::random_device()());
  CHECK(tally.opened > 50);  // SQLite ends the log at the first record whose checksum is wrong
}

TEST_CASE("a table that lacks a column is noticed when the database is opened") {
  Scratch scratch;
  mustOpen(scratch.database());
  SQLite::Database(scratch.database(), SQLite::OPEN_READWRITE).exec("ALTER TABLE runs DROP COLUMN exit_code");
  auto refusal = mustRefuse(scratch.database());
  CHECK(refusal.reason == "state_damaged");
  CHECK_THAT(refusal.what, hasText("exit_code"));
}

TEST_CASE("an index that does not fit its table is noticed when the database is opened") {
  Scratch scratch;
  {
    auto store = mustOpen(scratch.database());
    auto run = someRun("r-1", "w-1");
    store->addWorkWithRun(someWork("w-1"), run);
    run.state = RunState::Ended;
    run.outcome = Outcome::Succeeded;
    store->updateRun(run);
  }
  {
    // A row that should be in the index then, and is not. (One too many is not noticed by every SQLite.)
    SQLite::Database byHand(scratch.database(), SQLite::OPEN_READWRITE);
    byHand.exec(
        "PRAGMA writable_schema = ON; "
        "UPDATE sqlite_master SET sql = replace(sql, '''ended''', '''queued''') WHERE name = 'runs_unended'");
  }
  CHECK(SQLite::Database(scratch.database()).execAndGet("PRAGMA quick_check").getString() == "ok");
  CHECK_THAT(mustRefuse(scratch.database()).what, hasText("runs_unended"));
}

TEST_CASE("values that were never written are noticed") {
  Scratch scratch;
  {
    auto store = mustOpen(scratch.database());
    store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
    auto byHand = [&](const std::string& sql) {
      SQLite::Database(scratch.database(), SQLite::OPEN_READWRITE).exec("PRAGMA ignore_check_constraints = ON; " + sql);
    };
    CHECK(store->run("r-1"));
    byHand("UPDATE runs SET attempt = 5000000000");
    CHECK_THROWS_WITH(store->run("r-1"), hasText("attempt"));
    byHand("UPDATE runs SET attempt = 1, notes = '[1]'");
    CHECK_THROWS_WITH(store->run("r-1"), hasText("notes"));
    byHand("UPDATE runs SET notes = '{'");
    CHECK_THROWS_WITH(store->recentRuns(1), hasText("notes"));
    byHand("UPDATE runs SET notes = '[]', state = 'dancing'");
    CHECK_THROWS_WITH(store->unendedRuns(), hasText("state"));
    CHECK(store->work("w-1"));  // one bad row keeps nobody from the others
  }
  CHECK_THAT(mustRefuse(scratch.database()).what, hasText("CHECK constraint"));
}

TEST_CASE("with ten thousand runs everything that the daemon asks for is as much work as with ten") {
  WorkCounter counter;
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  uint32_t number = 1;
  auto add = [&]() {
    auto run = someRun(numbered("r-", number), numbered("w-", number));
    run.state = number % 1000 == 0 ? RunState::Running : RunState::Ended;
    store->addWorkWithRun(someWork(run.work), run);
    ++number;
  };
  struct Counts {
    uint64_t adding, one, ofWork, recent, unended, updating;
  };
  auto measure = [&]() {
    auto run = *store->run("r-1");
    return Counts{counter.of(add),
                  counter.of([&]() { store->run(numbered("r-", number - 1)); }),
                  counter.of([&]() { store->runsOf(numbered("w-", number - 1)); }),
                  counter.of([&]() { store->recentRuns(10); }),
                  counter.of([&]() { store->unendedRuns(); }),
                  counter.of([&]() { store->updateRun(run); })};
  };
  while (number <= 10) add();
  auto few = measure();
  while (number <= 10000) add();
  auto many = measure();
  REQUIRE(store->unendedRuns().size() == 10);

  // Reading all of them would be a thousand times as much. The ten that are live are read anyway.
  REQUIRE(few.one > 0);
  CHECK(many.adding < 2 * few.adding);
  CHECK(many.one < 2 * few.one);
  CHECK(many.ofWork < 2 * few.ofWork);
  CHECK(many.recent < 2 * few.recent);
  CHECK(many.unended < 100 * few.unended);
  CHECK(many.updating < 2 * few.updating);
}
