// Opening the state database: who may, what is refused, how it gets its form, and who else may look at it.
#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Exception.h>
#include <signal.h>

#include <thread>

#include "daemon/state/schema.h"
#include "tests/unit/state_support.h"

using namespace oc;
using namespace oc::state;

TEST_CASE("the database is private whatever the umask is, and so is what lies beside it") {
  Scratch scratch;
  for (mode_t mask : {0777, 0000}) {
    auto database = scratch / ("state-" + std::to_string(mask) + ".db");
    auto before = umask(mask);
    auto opened = Store::open(database);
    umask(before);
    REQUIRE(opened.ok());
    opened.value()->addWork(someWork("w-1"));
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) CHECK(modeOf(database + suffix) == 0600);
  }
}

TEST_CASE("a database that others were let into is private again") {
  Scratch scratch;
  mustOpen(scratch.database());
  KJ_SYSCALL(chmod(scratch.database().c_str(), 0666));
  mustOpen(scratch.database());
  CHECK(modeOf(scratch.database()) == 0600);
}

TEST_CASE("a second daemon is refused and told the first one's process") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  auto said = inChild([&]() {
    auto second = Store::open(scratch.database());
    return second.ok() ? "opened" : second.refusal().reason + " " + second.refusal().what;
  });
  CHECK_THAT(said, beginsWith("state_locked ") && hasText("process " + std::to_string(getpid())));
  CHECK(mustRefuse(scratch.database()).reason == "state_locked");  // in the same process as well

  store->addWork(someWork("w-1"));  // the refused one disturbed nothing
  store = nullptr;
  CHECK(mustOpen(scratch.database())->work("w-1"));
}

TEST_CASE("the lock of a daemon that was killed holds nobody up") {
  Scratch scratch;
  auto ready = makePipe();
  pid_t child;
  KJ_SYSCALL(child = fork());
  if (child == 0) {
    auto store = Store::open(scratch.database());
    writeAll(ready.second.get(), store.ok() ? "y" : "n");
    for (;;) pause();
  }
  char answer = '?';
  KJ_SYSCALL(read(ready.first.get(), &answer, 1));
  CHECK(answer == 'y');
  auto refusal = mustRefuse(scratch.database());
  CHECK_THAT(refusal.what, hasText("process " + std::to_string(child)));
  KJ_SYSCALL(kill(child, SIGKILL));
  KJ_SYSCALL(waitpid(child, nullptr, 0));
  mustOpen(scratch.database());
}

TEST_CASE("whatever the lock file says, the lock is what counts") {
  Scratch scratch;
  for (const char* text : {"", "1\n", "no number", "99999999999999999999999999999999"}) {
    writeFileAtomically(scratch.database() + ".lock", text);
    auto store = mustOpen(scratch.database());
    CHECK_THAT(mustRefuse(scratch.database()).what, hasText("process " + std::to_string(getpid())));
  }
}

TEST_CASE("a database of a newer version is refused, and not a byte of it changes") {
  Scratch scratch;
  mustOpen(scratch.database())->addWork(someWork("w-1"));
  auto version = std::to_string(migrations().size() + 1);
  {
    // Open while it is looked at: what it wrote is in the log, not yet in the file.
    auto newer = byHand(scratch);
    newer.exec("CREATE TABLE news (x); PRAGMA user_version = " + version);
    auto database = readFile(scratch.database(), 1 << 24), log = readFile(scratch / "state.db-wal", 1 << 24);
    CHECK_FALSE(log.empty());
    auto refusal = mustRefuse(scratch.database());
    CHECK(refusal.reason == "state_newer");
    CHECK_THAT(refusal.what, hasText(version) && hasText(scratch.database()));
    CHECK(readFile(scratch.database(), 1 << 24) == database);
    CHECK(readFile(scratch / "state.db-wal", 1 << 24) == log);
  }
  auto database = readFile(scratch.database(), 1 << 24);
  CHECK(mustRefuse(scratch.database()).reason == "state_newer");
  CHECK(readFile(scratch.database(), 1 << 24) == database);
}

TEST_CASE("another program's database is refused, and not a byte of it changes") {
  Scratch scratch;
  byHand(scratch).exec("CREATE TABLE bookmarks (url)");
  auto before = readFile(scratch.database(), 1 << 24);
  auto refusal = mustRefuse(scratch.database());
  CHECK(refusal.reason == "state_damaged");
  CHECK_THAT(refusal.what, hasText("another program"));
  CHECK(readFile(scratch.database(), 1 << 24) == before);
}

TEST_CASE("a file that is no database is refused with what to do, and left as it is") {
  Scratch scratch;
  const std::string text = "Dear diary,\n" + std::string(5000, '.');
  writeFileAtomically(scratch.database(), text);
  auto refusal = mustRefuse(scratch.database());
  CHECK(refusal.reason == "state_damaged");
  CHECK_THAT(refusal.fix, hasText("restore") && hasText(scratch.database() + "-wal"));
  CHECK(readFile(scratch.database(), 1 << 24) == text);
}

TEST_CASE("an empty file becomes a database") {
  Scratch scratch;
  writeFileAtomically(scratch.database(), "");
  mustOpen(scratch.database())->addWork(someWork("w-1"));
  CHECK(mustOpen(scratch.database())->work("w-1"));
}

TEST_CASE("what is no regular file in the database's place is refused") {
  Scratch scratch;
  for (const std::string& place : {scratch.database(), scratch.database() + ".lock"}) {
    unlink(place.c_str());
    KJ_SYSCALL(mkdir(place.c_str(), 0700));
    CHECK(mustRefuse(scratch.database()).reason == "state_damaged");
    KJ_SYSCALL(rmdir(place.c_str()));

    KJ_SYSCALL(mkfifo(place.c_str(), 0600));
    CHECK(mustRefuse(scratch.database()).reason == "state_damaged");
    KJ_SYSCALL(unlink(place.c_str()));

    writeFileAtomically(scratch / "elsewhere", "");
    KJ_SYSCALL(symlink((scratch / "elsewhere").c_str(), place.c_str()));
    auto refusal = mustRefuse(scratch.database());
    CHECK(refusal.reason == "state_damaged");
    CHECK_THAT(refusal.what, hasText("symbolic link"));
    CHECK(readFile(scratch / "elsewhere", 1000).empty());
    KJ_SYSCALL(unlink(place.c_str()));
  }
  mustOpen(scratch.database());
}

TEST_CASE("a directory that cannot be written to is refused with what to do") {
  Scratch scratch;
  auto attempt = [&]() {
    return inChild([&]() {
      becomeOrdinary();
      auto opened = Store::open(scratch.database());
      return opened.ok() ? "opened" : opened.refusal().reason + " " + opened.refusal().fix;
    });
  };
  KJ_SYSCALL(chmod(scratch.path().c_str(), 0555));
  CHECK_THAT(attempt(), beginsWith("state_unwritable ") && hasText(scratch.path()));
  KJ_SYSCALL(chmod(scratch.path().c_str(), 0777));
  CHECK(attempt() == "opened");

  CHECK(mustRefuse(scratch / "missing/state.db").reason == "state_unwritable");
}

// ---- migrations

TEST_CASE("a migration that fails leaves the version before it, whole, and can be taken again") {
  Scratch scratch;
  const Migration good[] = {{"a", "CREATE TABLE a (x); INSERT INTO a VALUES (1)"},
                            {"b", "CREATE TABLE b (x); UPDATE a SET x = x + 1"},
                            {"c", "CREATE TABLE c (x)"}};
  const Migration broken[] = {good[0], {"b", "CREATE TABLE b (x); UPDATE a SET x = x + 1; SELECT nonsense"}, good[2]};
  auto database = byHand(scratch);
  CHECK_THROWS_AS(migrate(database, broken), SQLite::Exception);
  CHECK(schemaVersion(database) == 1);
  CHECK(database.tableExists("a"));
  CHECK_FALSE(database.tableExists("b"));
  CHECK_FALSE(database.tableExists("c"));

  migrate(database, good);
  CHECK(schemaVersion(database) == 3);
  CHECK(database.tableExists("c"));
  migrate(database, good);
  CHECK(database.execAndGet("SELECT sum(x) FROM a").getInt() == 2);  // each step once
}

TEST_CASE("a migration that is killed in the middle leaves the version before it") {
  Scratch scratch;
  const Migration steps[] = {{"a", "CREATE TABLE a (x)"}};
  auto said = inChild([&]() -> std::string {
    auto database = byHand(scratch);
    database.createFunction("die", 0, false, nullptr,
                            [](sqlite3_context*, int, sqlite3_value**) { kill(getpid(), SIGKILL); });
    const Migration deadly[] = {steps[0], {"b", "CREATE TABLE b (x); INSERT INTO b SELECT die()"}};
    migrate(database, deadly);
    return "went through";
  });
  CHECK_THAT(said, hasText("signal 9"));
  auto database = byHand(scratch);
  CHECK(schemaVersion(database) == 1);
  CHECK_FALSE(database.tableExists("b"));
}

// ---- others with the file

TEST_CASE("a write waits for somebody who has the database locked for a moment") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  auto other = byHand(scratch);
  other.exec("BEGIN IMMEDIATE");
  CHECK_THROWS(byHand(scratch).exec("BEGIN IMMEDIATE"));  // without waiting, it is locked
  std::thread releasing([&]() {
    usleep(100000);
    other.exec("COMMIT");
  });
  store->addWork(someWork("w-1"));
  releasing.join();
  CHECK(store->work("w-1"));
}

TEST_CASE("what others can read beside the daemon is committed and whole") {
  Scratch scratch;
  auto store = mustOpen(scratch.database());
  store->addWorkWithRun(someWork("w-1"), someRun("r-1", "w-1"));
  auto reader = byHand(scratch);
  CHECK(reader.execAndGet("SELECT title FROM work WHERE id = 'w-1'").getString() == "Mend the fence");
  CHECK(reader.execAndGet("PRAGMA journal_mode").getString() == "wal");
  CHECK(store->integrity() == "ok");
}
