#include <fcntl.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/spawn.h"
#include "base/standard_descriptors.h"
#include "base/text.h"
#include "base/watch.h"
#include "tests/catch.h"

namespace oc {
namespace {

struct Directory {
  std::string path;
  Directory() {
    char name[] = "/tmp/oc-base-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Directory() { removeTree(path); }
};

bool isThere(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}

TEST_CASE("a program that was started without standard descriptors opens nothing else in their place") {
  for (bool filled : {true, false}) {
    auto child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      close(STDIN_FILENO), close(STDOUT_FILENO), close(STDERR_FILENO);
      if (filled) fillStandardDescriptors();
      _exit(open("/proc/self/status", O_RDONLY) > STDERR_FILENO ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == (filled ? 0 : 1));
  }
}

TEST_CASE("a folder of ours that cannot be one is told in a sentence, by its path and what is there instead") {
  Directory directory;
  auto path = directory.path + "/ours";
  auto told = [&]() -> std::string {
    auto exception = kj::runCatchingExceptions([&]() { makePrivateDirectory(path); });
    return kj::str(KJ_REQUIRE_NONNULL(exception).getDescription()).cStr();
  };
  writeFileAtomically(path, "x");
  CHECK(told() == path + " is in the place of a folder; move it away");
  REQUIRE(unlink(path.c_str()) == 0);
  REQUIRE(symlink(directory.path.c_str(), path.c_str()) == 0);
  CHECK(told() == path + " is a symbolic link, and has to be a folder itself");
  path = "/proc/ours";
  CHECK(told().starts_with("the folder /proc/ours can't be made: "));
  path = directory.path + "/fresh";
  makePrivateDirectory(path);
  REQUIRE(chmod(path.c_str(), 0777) == 0);
  makePrivateDirectory(path);
  struct stat stats;
  REQUIRE(stat(path.c_str(), &stats) == 0);
  CHECK((stats.st_mode & 07777) == 0700);
}

TEST_CASE("a tree is removed whatever was made of it, and no link out of it is followed") {
  Directory directory;
  auto tree = directory.path + "/tree", outside = directory.path + "/outside";
  makeDirectories(tree + "/a/closed");
  makeDirectories(outside);
  writeFileAtomically(outside + "/precious", "x");
  REQUIRE(symlink(outside.c_str(), (tree + "/link").c_str()) == 0);
  writeFileAtomically(tree + "/a/closed/file", "x");
  REQUIRE(chmod((tree + "/a/closed").c_str(), 0) == 0);
  SECTION("as it is") {}
  SECTION("deeper than descriptors last, with the names that removing would use") {
    makeDirectories(tree + "/.removing-0/file");
    auto before = openFile(".", O_RDONLY | O_DIRECTORY);
    REQUIRE(chdir(tree.c_str()) == 0);
    for (int i = 0; i < 3000; ++i) {
      REQUIRE(mkdir("d", 0700) == 0);
      REQUIRE(chdir("d") == 0);
    }
    REQUIRE(fchdir(before.get()) == 0);
  }
  removeTree(tree);
  CHECK_FALSE(isThere(tree));
  CHECK(isThere(outside + "/precious"));
  removeTree(tree);  // not there: fine
}

TEST_CASE("paths have one normal form") {
  CHECK(normalizePath("/a//b/./c/../d/") == "/a/b/d");
  CHECK(normalizePath("/../..") == "/");
  CHECK(isAtOrUnder("/a/b", "/a"));
  CHECK(isAtOrUnder("/a", "/a"));
  CHECK_FALSE(isAtOrUnder("/ab", "/a"));
  std::map<std::string, std::string> places = {{"workspace", "/w"}};
  CHECK(expandPath("~/x", "/home/me", places) == "/home/me/x");
  CHECK(expandPath("{workspace}/../y", "/home/me", places) == "/y");
  CHECK_FALSE(expandPath("~other/x", "/home/me", places).has_value());
  CHECK_FALSE(expandPath("{nothing}", "/home/me", places).has_value());
  CHECK_FALSE(expandPath("relative", "/home/me", places).has_value());
}

TEST_CASE("a file is replaced as a whole, with the mode that was asked for") {
  Directory directory;
  auto path = directory.path + "/file";
  writeFileAtomically(path, "one", 0600);
  writeFileAtomically(path, "two", 0600);
  CHECK(readFile(path, 100) == "two");
  struct stat stats;
  REQUIRE(stat(path.c_str(), &stats) == 0);
  CHECK((stats.st_mode & 0777) == 0600);
  CHECK_THROWS(readFile(path, 2));
  REQUIRE(mkfifo((directory.path + "/fifo").c_str(), 0600) == 0);
  CHECK_THROWS(readFile(directory.path + "/fifo", 100));
}

TEST_CASE("text from elsewhere cannot drive a terminal, and tokens do not reach a log") {
  CHECK(printable("a\x1b]52;c;eA==\x07z").find('\x1b') == std::string::npos);
  CHECK(printable("a\nb") == "a\\x0ab");
  CHECK(printable("a\nb", true) == "a\nb");
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("gr\u00fc\u00df dich") == "gr\u00fc\u00df dich");
  CHECK(printable("\u202e") == "\\u202e");
  auto token = "ghs_" + std::string(40, 'a');
  CHECK(redacted("token " + token + " end") == "token [redacted] end");
  CHECK(redacted("ghs_short") == "ghs_short");
  CHECK(shellQuote("it's") == "'it'\\''s'");
}

TEST_CASE("a program is started with what was listed, and nothing else of ours") {
  REQUIRE(setenv("OC_TEST_LEAK", "1", 1) == 0);
  auto io = kj::setupAsyncIo();
  auto output = makePipe();
  auto extra = openFile("/dev/null", O_RDONLY);
  int inheritable = fcntl(extra.get(), F_DUPFD, 50);  // without close-on-exec: a leak unless it is closed
  REQUIRE(inheritable >= 50);
  SpawnSpec spec;
  spec.program = "/bin/sh";
  spec.arguments = {"-c", "env; ls -l /proc/self/fd | wc -l; grep NoNewPrivs /proc/self/status; kill -TERM $$"};
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.descriptors = {{output.second.get(), 1}};
  auto spawned = spawn(spec);
  output.second = nullptr;
  auto text = readAll(output.first.get(), 65536);
  close(inheritable);
  CHECK_THAT(text, !hasText("OC_TEST_LEAK"));
  CHECK_THAT(text, hasText("NoNewPrivs:\t1"));
  // 0, 1, 2, the listing's own, and ls's "total" line.
  CHECK_THAT(text, hasText("\n5\n"));
  auto end = whenEnded(io.unixEventPort, spawned.pidfd.get()).wait(io.waitScope);
  CHECK(end.known);
  CHECK(end.signaled);
  CHECK(end.code == SIGTERM);
  unsetenv("OC_TEST_LEAK");
}

TEST_CASE("a program that cannot be started is an error that names the step") {
  SpawnSpec spec;
  spec.program = "/nonexistent/program";
  CHECK_THROWS(spawn(spec));
  spec.program = "/bin/true";
  spec.directory = "/nonexistent";
  CHECK_THROWS(spawn(spec));
}

TEST_CASE("JSON that is nested too deep is not parsed") {
  auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(parseJson(nested(mostJsonDepth)).is_array());
  CHECK(parseJson(nested(mostJsonDepth + 1)).is_discarded());
  CHECK(parseJson(nested(5'000'000)).is_discarded());
  // Brackets in a text are no nesting, and a quote behind a backslash ends no text.
  CHECK(parseJson("[\"\\\"" + std::string(100, '[') + "\"]").is_array());
  CHECK(parseJson("[1,").is_discarded());
  CHECK_THROWS_AS(parseJson("").at("version"), Json::exception);
}

}  // namespace
}  // namespace oc
