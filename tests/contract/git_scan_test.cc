// A look at a workspace's files before and after a run.
#include "base/change_time.h"
#include "git_fixture.h"

using namespace oc;
using namespace oc::git;
using namespace oc::git::tests;

namespace {

struct Seen {
  Refusal refusal;
  std::vector<std::string> warnings;

  bool warnsOf(const std::string& path) const {
    for (auto& text : warnings) {
      if (text.starts_with(path + ":")) return true;
    }
    return false;
  }
};

struct Scanned : World {
  Scanned() {
    makeCheckout();
    daemon.clone();
  }
  Seen scan(int64_t clonedAt = 0) {
    Served served(daemon.io, {"scan", "--workspace", workspace()});
    auto request = served.git().scanRequest();
    request.setClonedAt(clonedAt);
    auto answer = request.send().wait(daemon.io.waitScope);
    Seen seen{read(answer.getRefusal()), {}};
    for (auto text : answer.getWarnings()) seen.warnings.push_back(toString(text));
    return seen;
  }
  Daemon daemon{*this};
};

}  // namespace

TEST_CASE("C6 a fresh workspace has nothing to refuse or warn of") {
  Scanned world;
  auto seen = world.scan();
  CHECK(seen.refusal.reason == "");
  CHECK(seen.warnings.empty());
}

TEST_CASE("C6 a hard link to a file outside refuses, naming the file and pnpm's setting") {
  Scanned world;
  auto w = world.workspace();
  put(world.at("secret"), "secret\n");
  REQUIRE(link(world.at("secret").c_str(), (w + "/innocent\x1b[2J").c_str()) == 0);
  SECTION("one name") {}
  SECTION("two names inside") { REQUIRE(link(world.at("secret").c_str(), (w + "/zzz").c_str()) == 0); }
  auto seen = world.scan();
  CHECK(seen.refusal.reason == "sandbox_denied");
  INFO(seen.refusal.what);
  CHECK(seen.refusal.what.find("innocent") != std::string::npos);
  CHECK(!hasControlCharacters(seen.refusal.what));
  CHECK(seen.refusal.fix.find("package-import-method=copy") != std::string::npos);
  // The positive control: with the name outside gone, the same files are the workspace's own.
  REQUIRE(unlink(world.at("secret").c_str()) == 0);
  CHECK(world.scan().refusal.reason == "");
}

TEST_CASE("C6 links among the workspace's own files are fine") {
  Scanned world;
  auto w = world.workspace();
  put(w + "/target/debug/deps/a", "a");
  put(w + "/b/c/d", "d");
  for (auto name : {"/target/a", "/b/a", "/.git/a"})
    REQUIRE(link((w + "/target/debug/deps/a").c_str(), (w + name).c_str()) == 0);
  CHECK(world.scan().refusal.reason == "");
}

TEST_CASE("C6 a broad and deep tree is looked at wholly, whoever of several comes to a file") {
  Scanned world;
  auto w = world.workspace();
  // Each level has others beside it that are still to be entered, and one file has a name in each of them.
  put(w + "/shared", "x");
  shell("cd " + w +
        "; s=$PWD/shared; i=0; while [ $i -lt 480 ]; do mkdir -p d a/b a/c b/b b/c c e; ln $s a/b/n; cd -P d; "
        "i=$((i+1)); done; touch bottom; ln bottom " +
        world.at("outside"));
  auto seen = world.scan();
  CHECK(seen.refusal.reason == "sandbox_denied");
  CHECK(seen.refusal.what.find("hard link outside") != std::string::npos);
  CHECK(seen.refusal.what.find("other files") == std::string::npos);
  REQUIRE(unlink(world.at("outside").c_str()) == 0);
  INFO(world.scan().refusal.what);
  CHECK(world.scan().refusal.reason == "");
}

TEST_CASE("C6 what cannot be looked at refuses") {
  Scanned world;
  auto w = world.workspace();
  SECTION("a closed directory") {
    if (geteuid() == 0) return;  // nothing is closed to root
    put(w + "/a/closed/x", "x");
    shell("chmod 000 " + w + "/a/closed");
    auto seen = world.scan();
    CHECK(seen.refusal.reason == "sandbox_denied");
    CHECK(seen.refusal.what.find("a/closed") != std::string::npos);
    shell("chmod 755 " + w + "/a/closed");
    CHECK(world.scan().refusal.reason == "");
  }
  SECTION("directories that are nested too deep") {
    shell("cd " + w + "; i=0; while [ $i -lt 600 ]; do mkdir d; cd -P d; i=$((i+1)); done");
    auto seen = world.scan();
    CHECK(seen.refusal.reason == "sandbox_denied");
    CHECK(seen.refusal.what.find("nested too deep") != std::string::npos);
    CHECK(seen.refusal.what.size() < 4096);
  }
  SECTION("a workspace that is a link") {
    REQUIRE(rename(w.c_str(), world.at("real").c_str()) == 0);
    REQUIRE(symlink(world.at("real").c_str(), w.c_str()) == 0);
    CHECK(world.scan().refusal.reason == "sandbox_denied");
  }
  SECTION("no workspace") {
    removeTree(w);
    CHECK(world.scan().refusal.reason == "sandbox_denied");
  }
}

TEST_CASE("a scan follows no link out of the workspace, and waits for no pipe") {
  Scanned world;
  auto w = world.workspace();
  put(world.at("outside/.envrc"), "x");
  REQUIRE(link(world.at("outside/.envrc").c_str(), world.at("outside/other").c_str()) == 0);
  REQUIRE(symlink(world.at("outside").c_str(), (w + "/out").c_str()) == 0);
  REQUIRE(symlink("..", (w + "/loop").c_str()) == 0);
  REQUIRE(mkfifo((w + "/pipe").c_str(), 0600) == 0);
  auto seen = world.scan();
  CHECK(seen.refusal.reason == "");
  CHECK(seen.warnings.empty());
}

TEST_CASE("what a person would run by accident is warned of") {
  Scanned world;
  auto w = world.workspace();
  put(w + "/.git/commondir", "x");
  put(w + "/.git/config.worktree", "x");
  put(w + "/.git/hooks/pre-commit", "x");
  put(w + "/.git/hooks/pre-push.sample", "x");
  put(w + "/.git/modules/m/hooks/post-checkout", "x");
  put(w + "/.git/modules/m/config.worktree", "");
  put(w + "/lib/.git/config", "x");
  put(w + "/sub/.git", "gitdir: x");
  put(w + "/.envrc", "x");
  put(w + "/deep/er/.envrc", "x");
  put(w + "/.vscode/tasks.json", "x");
  put(w + "/.idea/x", "x");
  put(w + "/.husky/pre-commit", "x");
  put(w + "/.githooks/pre-commit", "x");
  put(w + "/hooks/useThing.ts", "x");
  put(w + "/commondir", "x");
  auto seen = world.scan();
  CHECK(seen.refusal.reason == "");
  for (auto path :
       {".git/commondir", ".git/config.worktree", ".git/hooks/pre-commit", ".git/modules/m/hooks/post-checkout",
        "lib/.git", "sub/.git", ".envrc", "deep/er/.envrc", ".vscode", ".idea", ".husky", ".githooks"}) {
    INFO(path);
    CHECK(seen.warnsOf(path));
  }
  CHECK(seen.warnings.size() == 12);
}

TEST_CASE("what the repository brought, and nobody has changed, is not warned of") {
  Scanned world;
  auto w = world.workspace();
  put(w + "/.envrc", "x");
  put(w + "/.vscode/deep/tasks.json", "x");
  put(w + "/lib/.husky/pre-commit", "x");
  put(w + "/examples/settings/tasks.json", "x");
  put(w + "/sub/.git", "gitdir: x");
  put(world.at("cloned"), "");
  struct stat stats {};
  REQUIRE(stat(world.at("cloned").c_str(), &stats) == 0);
  auto clonedAt = changeTime(stats);
  usleep(50'000);  // the file system's clock goes by steps
  CHECK(world.scan().warnings.size() == 4);
  auto unchanged = world.scan(clonedAt);
  CHECK(unchanged.warnings.size() == 1);
  CHECK(unchanged.warnsOf("sub/.git"));  // no repository brings one

  auto warnsNow = [&](const char* path) {
    auto seen = world.scan(clonedAt);
    CHECK(seen.warnings.size() == 2);
    return seen.warnsOf(path);
  };
  SECTION("a file whose times were put back") {
    put(w + "/.envrc", "y");
    timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    REQUIRE(utimensat(AT_FDCWD, (w + "/.envrc").c_str(), old, 0) == 0);
    CHECK(warnsNow(".envrc"));
  }
  SECTION("something in a folder") {
    put(w + "/.vscode/deep/tasks.json", "y");
    CHECK(warnsNow(".vscode"));
  }
  SECTION("something new in a folder, several times") {
    for (auto name : {"a", "b", "c"}) put(w + "/lib/.husky/" + name, "y");
    CHECK(warnsNow("lib/.husky"));
  }
  SECTION("something that is gone from a folder") {
    REQUIRE(unlink((w + "/.vscode/deep/tasks.json").c_str()) == 0);
    CHECK(warnsNow(".vscode"));
  }
  SECTION("old files under another name") {
    REQUIRE(rename((w + "/examples/settings").c_str(), (w + "/examples/.idea").c_str()) == 0);
    CHECK(warnsNow("examples/.idea"));
  }
}

TEST_CASE("at most 100 warnings are given, those nearest to the top, and fit for a terminal") {
  Scanned world;
  auto w = world.workspace();
  for (int i = 0; i < 300; ++i) put(w + "/a/b/" + std::to_string(i) + "/.envrc", "x");
  put(w + "/\x1b]52;c;aGk=\x07/.envrc", "x");
  put(w + "/.vscode/x", "x");
  auto seen = world.scan();
  CHECK(seen.warnings.size() == 100);
  CHECK(seen.warnings[0].starts_with(".vscode:"));
  CHECK(seen.warnings[1].find(".envrc") != std::string::npos);
  for (auto& text : seen.warnings) CHECK(!hasControlCharacters(text));
}

TEST_CASE("a repository in the place of the workspace's own .git is warned of") {
  Scanned world;
  auto w = world.workspace();
  REQUIRE(rename((w + "/.git").c_str(), (w + "/.g2").c_str()) == 0);
  put(w + "/.git", "gitdir: .g2\n");
  CHECK(world.scan().warnsOf(".git"));
}
