#include "daemon/work/log_file.h"

#include <fcntl.h>
#include <kj/async-io.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "base/crypto.h"
#include "base/fd.h"
#include "tests/catch.h"

using namespace oc;
using namespace oc::work;

namespace {

struct Fixture {
  Fixture() {
    std::string pattern = "/tmp/oc-log-XXXXXX";
    KJ_REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory = pattern;
    log = directory + "/log";
  }
  ~Fixture() { removeTree(directory); }
  KJ_DISALLOW_COPY(Fixture);

  void append(const std::string& path, std::string_view bytes) {
    auto fd = openFile(path, O_WRONLY | O_CREAT | O_APPEND);
    writeAll(fd.get(), bytes);
  }
  void append(std::string_view bytes) { append(log, bytes); }

  // Fails the test rather than letting it hang, should an event have been missed.
  void mustCome(kj::Promise<void> promise) {
    auto late = io.provider->getTimer().afterDelay(60 * kj::SECONDS).then([]() { KJ_FAIL_REQUIRE("it never came"); });
    promise.exclusiveJoin(kj::mv(late)).wait(io.waitScope);
  }
  bool hasCome(kj::Promise<void>& promise) { return promise.poll(io.waitScope); }

  // How many things the kernel watches for this process.
  int watches() {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) {
      char target[64] = {};
      if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof(target) - 1) < 0) continue;
      if (std::string_view(target).find("inotify") == std::string_view::npos) continue;
      auto info = openFile("/proc/self/fdinfo/" + std::to_string(fd), O_RDONLY);
      auto text = readAll(info.get(), 1 << 20);
      for (size_t at = text.find("inotify wd:"); at != std::string::npos; at = text.find("inotify wd:", at + 1))
        ++count;
    }
    return count;
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  LogReader reader{io.unixEventPort};
  std::string directory, log;
};

}  // namespace

// ---- reading

TEST_CASE_METHOD(Fixture, "a log is read in pieces, byte for byte") {
  auto bytes = randomBytes(600000);
  append(bytes);
  std::string all;
  std::vector<size_t> sizes;
  for (uint64_t offset = 0;;) {
    auto piece = reader.read(log, offset);
    CHECK(piece.next == offset + piece.bytes.size());
    if (piece.bytes.empty()) break;
    sizes.push_back(piece.bytes.size());
    all += piece.bytes;
    offset = piece.next;
  }
  CHECK(all == bytes);
  CHECK(sizes == std::vector<size_t>{262144, 262144, 75712});
  CHECK(reader.read(log, 599999).bytes == bytes.substr(599999));
}

TEST_CASE_METHOD(Fixture, "beyond the end of a log there is nothing, however far") {
  append("abc");
  for (uint64_t offset : {uint64_t(3), uint64_t(1000), uint64_t(1) << 63, UINT64_MAX}) {
    auto piece = reader.read(log, offset);
    CHECK(piece.bytes.empty());
    CHECK(piece.next == offset);
  }
  CHECK(reader.read(log, 2).bytes == "c");
}

TEST_CASE_METHOD(Fixture, "a log that does not exist yet has no bytes") {
  CHECK(reader.read(log, 0).bytes.empty());
  CHECK(reader.read(directory + "/no/such/log", 0).bytes.empty());
}

TEST_CASE_METHOD(Fixture, "what is no regular file is not read in a log's place") {
  append(directory + "/secret", "secret");
  CHECK(reader.read(directory + "/secret", 0).bytes == "secret");

  KJ_SYSCALL(symlink("secret", log.c_str()));
  CHECK_THROWS(reader.read(log, 0));
  CHECK_THROWS(reader.whenGrown(log, 0).wait(io.waitScope));
  KJ_SYSCALL(unlink(log.c_str()));

  KJ_SYSCALL(mkfifo(log.c_str(), 0600));
  CHECK_THROWS_WITH(reader.read(log, 0), hasText("no regular file"));
  CHECK_THROWS_WITH(reader.whenGrown(log, 0).wait(io.waitScope), hasText("no regular file"));
  KJ_SYSCALL(unlink(log.c_str()));

  KJ_SYSCALL(mkdir(log.c_str(), 0700));
  CHECK_THROWS_WITH(reader.read(log, 0), hasText("no regular file"));
  CHECK_THROWS_WITH(reader.whenGrown(log, 0).wait(io.waitScope), hasText("no regular file"));
}

// ---- waiting

TEST_CASE_METHOD(Fixture, "who waits for what is there already does not wait") {
  append("abc");
  mustCome(reader.whenGrown(log, 0));
  mustCome(reader.whenGrown(log, 2));
  CHECK(watches() == 0);
}

TEST_CASE_METHOD(Fixture, "who waits is told when the log grows, and not before") {
  append("abc");
  auto grown = reader.whenGrown(log, 3);
  CHECK_FALSE(hasCome(grown));
  KJ_SYSCALL(utimensat(AT_FDCWD, log.c_str(), nullptr, 0));  // an event, but no growth
  CHECK_FALSE(hasCome(grown));
  append("d");
  mustCome(kj::mv(grown));
  CHECK(reader.read(log, 3).bytes == "d");
}

TEST_CASE_METHOD(Fixture, "who waits beyond the end is told when the log gets there") {
  append("abc");
  auto grown = reader.whenGrown(log, 5);
  append("de");
  CHECK_FALSE(hasCome(grown));
  append("f");
  mustCome(kj::mv(grown));
}

TEST_CASE_METHOD(Fixture, "a log may appear later, and the directories above it too") {
  std::string run = directory + "/runs/r-1", later = run + "/private/log";
  auto grown = reader.whenGrown(later, 0);
  CHECK_FALSE(hasCome(grown));
  SECTION("step by step") {
    for (const auto& path : {directory + "/runs", directory + "/runs/r-2", run, run + "/private"}) {
      KJ_SYSCALL(mkdir(path.c_str(), 0700));
      CHECK_FALSE(hasCome(grown));
    }
    append(later, "");
    CHECK_FALSE(hasCome(grown));
    append(later, "x");
  }
  SECTION("all at once") {
    makeDirectories(run + "/private");
    append(later, "x");
  }
  SECTION("moved there with everything in it") {
    makeDirectories(directory + "/made/r-1/private");
    append(directory + "/made/r-1/private/log", "x");
    KJ_SYSCALL(rename((directory + "/made").c_str(), (directory + "/runs").c_str()));
  }
  SECTION("after its directory was removed and made again") {
    makeDirectories(run + "/private");
    CHECK_FALSE(hasCome(grown));
    removeTree(directory + "/runs");
    CHECK_FALSE(hasCome(grown));
    makeDirectories(run + "/private");
    append(later, "x");
  }
  mustCome(kj::mv(grown));
  CHECK(reader.read(later, 0).bytes == "x");
}

TEST_CASE_METHOD(Fixture, "who waits hears of a new log in the old one's place") {
  append("abc");
  auto grown = reader.whenGrown(log, 3);
  CHECK_FALSE(hasCome(grown));
  SECTION("after it was deleted") {
    KJ_SYSCALL(unlink(log.c_str()));
    CHECK_FALSE(hasCome(grown));
    append("abcd");
  }
  SECTION("while a writer has the deleted one open") {
    auto writer = openFile(log, O_WRONLY | O_APPEND);
    KJ_SYSCALL(unlink(log.c_str()));
    CHECK_FALSE(hasCome(grown));
    writeAll(writer.get(), "not in the log any more");
    CHECK_FALSE(hasCome(grown));
    append("abcd");
  }
  SECTION("renamed over it") {
    append(directory + "/other", "abcd");
    KJ_SYSCALL(rename((directory + "/other").c_str(), log.c_str()));
  }
  SECTION("after it was moved away") {
    KJ_SYSCALL(rename(log.c_str(), (directory + "/away").c_str()));
    CHECK_FALSE(hasCome(grown));
    append("abcd");
  }
  mustCome(kj::mv(grown));
}

TEST_CASE_METHOD(Fixture, "who waits is told when a link takes the log's place") {
  append("abc");
  append(directory + "/secret", "secret");
  auto grown = reader.whenGrown(log, 3);
  CHECK_FALSE(hasCome(grown));
  KJ_SYSCALL(unlink(log.c_str()));
  KJ_SYSCALL(symlink("secret", log.c_str()));
  CHECK_THROWS(grown.wait(io.waitScope));
}

TEST_CASE_METHOD(Fixture, "many may wait for one log, each for its own place, and go away") {
  append("abc");
  auto first = reader.whenGrown(log, 3), second = reader.whenGrown(log, 4);
  {
    auto dropped = reader.whenGrown(log, 3);
    CHECK_FALSE(hasCome(dropped));
    CHECK(watches() == 1);  // one is enough for all
  }
  append("d");
  mustCome(kj::mv(first));
  CHECK_FALSE(hasCome(second));
  CHECK(watches() == 1);
  append("e");
  mustCome(kj::mv(second));
  CHECK(watches() == 0);
}

TEST_CASE_METHOD(Fixture, "nothing is watched for those who no longer wait") {
  append("abc");
  append(directory + "/other", "");
  {
    auto first = reader.whenGrown(log, 3), second = reader.whenGrown(directory + "/other", 0),
         third = reader.whenGrown(directory + "/missing", 0);
    CHECK_FALSE(hasCome(first));
    CHECK(watches() == 3);
  }
  CHECK(watches() == 0);
  // And one who comes after is told.
  auto grown = reader.whenGrown(log, 3);
  append("d");
  mustCome(kj::mv(grown));
}

TEST_CASE_METHOD(Fixture, "who waits is told when the reader goes away") {
  kj::Promise<void> grown = nullptr;
  {
    LogReader shortLived(io.unixEventPort);
    grown = shortLived.whenGrown(log, 0);
    CHECK_FALSE(hasCome(grown));
  }
  CHECK_THROWS_WITH(grown.wait(io.waitScope), hasText("nobody reads logs"));
}

TEST_CASE_METHOD(Fixture, "following a writer gives every byte, whenever it writes") {
  const int pieces = 2000;
  pid_t writer;
  KJ_SYSCALL(writer = fork());
  if (writer == 0) {
    std::mt19937 random(7);
    for (int i = 0; i < pieces; ++i) {
      append(std::to_string(i) + std::string(random() % 300, '.') + "\n");
      if (random() % 20 == 0) usleep(random() % 2000);
    }
    _exit(0);
  }
  std::string followed;
  const std::string last = "\n" + std::to_string(pieces - 1);
  while (followed.find(last) == std::string::npos || followed.back() != '\n') {
    auto piece = reader.read(log, followed.size());
    followed += piece.bytes;
    if (piece.bytes.empty()) mustCome(reader.whenGrown(log, followed.size()));
  }
  int status;
  KJ_SYSCALL(waitpid(writer, &status, 0));
  CHECK(status == 0);
  CHECK(followed == readFile(log, 1 << 24));
}
