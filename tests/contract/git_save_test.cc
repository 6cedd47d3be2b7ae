// The git provider's contract: commits come back into the operator's checkout, and nothing of the operator's is lost.
#include "git_fixture.h"

using namespace oc;
using namespace oc::git;
using namespace oc::git::tests;

namespace {

// Every ref, HEAD and the config, to see that nothing else was touched.
std::string refs(const World& world) {
  return world.git(world.checkout(), "for-each-ref --format='%(refname) %(objectname)'") +
         contents(world.checkout() + "/.git/HEAD") + contents(world.checkout() + "/.git/config");
}

}  // namespace

TEST_CASE("C7 commits on the branch are saved to the operator's checkout, and no other ref is touched") {
  World world;
  world.makeCheckout();
  world.git(world.checkout(), "branch other");
  Daemon daemon(world);
  auto base = daemon.clone();
  auto w = world.workspace();
  world.commit(w, "a", "a\n");
  world.commit(w, "b", "b\n");
  auto before = refs(world);
  auto saved = daemon.saveFirst(base);
  INFO(saved.refusal.what);
  CHECK(saved.refusal.reason == "");
  CHECK(saved.savedAs == "agent/w-1");
  CHECK(saved.commits == 2);
  CHECK(world.tip(world.checkout(), "agent/w-1") == world.tip(w, "HEAD"));
  CHECK(world.git(world.checkout(), "show agent/w-1:b") == "b");
  CHECK(world.git(world.checkout(), "reflog show agent/w-1").find("saved from a workspace") != std::string::npos);
  CHECK(world.git(world.checkout(), "status --porcelain") == "");
  world.requireSound(world.checkout());
  CHECK(!exists(w + ".git-view"));
  world.git(world.checkout(), "update-ref -d refs/heads/agent/w-1");
  CHECK(refs(world) == before);

  SECTION("and again, after the next run") {
    world.git(world.checkout(), "update-ref refs/heads/agent/w-1 " + saved.tip);
    world.commit(w, "c", "c\n");
    auto again = daemon.save("agent/w-1", saved.tip, saved.tip, "agent/w-1-r-2");
    CHECK(again.savedAs == "agent/w-1");
    CHECK(again.commits == 1);
    CHECK(world.tip(world.checkout(), "agent/w-1") == world.tip(w, "HEAD"));
  }
  SECTION("also when the agent rewrote what was saved") {
    world.git(world.checkout(), "update-ref refs/heads/agent/w-1 " + saved.tip);
    world.git(w, "commit -q --amend -m rewritten");
    auto again = daemon.save("agent/w-1", saved.tip, saved.tip, "agent/w-1-r-2");
    CHECK(again.savedAs == "agent/w-1");
    CHECK(world.tip(world.checkout(), "agent/w-1") == world.tip(w, "HEAD"));
  }
  SECTION("also when it went back to a commit that is there") {
    world.git(world.checkout(), "update-ref refs/heads/agent/w-1 " + saved.tip);
    world.git(w, "reset -q --hard HEAD~1");
    auto again = daemon.save("agent/w-1", saved.tip, saved.tip, "agent/w-1-r-2");
    INFO(again.refusal.what);
    CHECK(again.savedAs == "agent/w-1");
    CHECK(again.commits == 0);
    CHECK(world.tip(world.checkout(), "agent/w-1") == world.tip(w, "HEAD"));
    world.requireSound(world.checkout());
  }
}

TEST_CASE("nothing is written when there is nothing new") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  auto before = refs(world);
  auto saved = daemon.save("agent/w-1", base, base, "agent/w-1-r-1");
  CHECK(saved.refusal.reason == "");
  CHECK(saved.tip == base);
  CHECK(saved.commits == 0);
  CHECK(refs(world) == before);
}

TEST_CASE("what an agent changed and did not commit is told, and nothing of its repository's own is believed") {
  World world;
  world.makeCheckout();
  world.commit(world.checkout(), ".gitignore", "*.o\n");
  Daemon daemon(world);
  auto base = daemon.clone();
  auto w = world.workspace();
  auto tell = [&]() {
    auto found = daemon.uncommitted(base);
    std::string text = std::to_string(found.count);
    for (auto& name : found.names) text += " " + name;
    return text;
  };
  CHECK(tell() == "0");
  put(w + "/new/one", "1\n");
  put(w + "/new/two", "2\n");
  put(w + "/made.o", "3\n");
  put(w + "/.gitignore", "*.o\n*.so\n");
  CHECK(tell() == "2 .gitignore new/");
  put(w + "/odd\nname\033[31m", "4\n");
  CHECK(tell().find('\n') == std::string::npos);
  CHECK(tell().find('\033') == std::string::npos);
  unlink((w + "/odd\nname\033[31m").c_str());

  // An index that calls everything unchanged, programs in the config, and a fake exclude.
  put(w + "/ran.sh", "#!/bin/sh\ntouch " + world.at("ran") + "\ncat\n");
  world.git(w, "add -A");
  world.git(w, "update-index --assume-unchanged .gitignore new/one new/two ran.sh");
  world.git(w, "config core.fsmonitor 'sh ran.sh'");
  world.git(w, "config filter.x.clean 'sh ran.sh'");
  put(w + "/.gitattributes", "* filter=x\n");
  put(w + "/.git/info/exclude", "*\n");
  CHECK(tell() == "4 .gitignore .gitattributes new/ ran.sh");
  CHECK(!exists(world.at("ran")));
  CHECK(!exists(w + ".git-view"));
}

TEST_CASE("a branch that the operator moved is never overwritten: the commits get a name of their own") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  world.commit(world.workspace(), "a", "a\n");
  auto path = world.checkout();
  auto tip = world.tip(world.workspace(), "HEAD");
  auto kept = [&](const std::string& name) {
    auto before = world.git(path, "for-each-ref --format='%(refname) %(objectname)'");
    auto saved = daemon.saveFirst(base);
    INFO(saved.refusal.what);
    CHECK(saved.savedAs == name);
    CHECK(world.tip(path, name) == tip);
    world.git(path, "update-ref -d refs/heads/" + name);
    CHECK(world.git(path, "for-each-ref --format='%(refname) %(objectname)'") == before);
    world.git(path, "update-ref refs/heads/" + name + " " + tip);
    world.requireSound(path);
  };
  SECTION("it exists") {
    world.git(path, "branch agent/w-1 main");
    kept("agent/w-1-r-1");
    SECTION("and once more: the same commits need no second name") {
      CHECK(daemon.saveFirst(base).savedAs == "agent/w-1-r-1");
    }
    SECTION("and that name is taken, too") {
      world.git(path, "update-ref refs/heads/agent/w-1-r-1 main");
      kept("agent/w-1-r-1-2");
      world.git(path, "update-ref refs/heads/agent/w-1-r-1-2 main");
      kept("agent/w-1-r-1-3");
    }
  }
  SECTION("it exists, packed") {
    world.git(path, "branch agent/w-1 main");
    world.git(path, "pack-refs --all");
    kept("agent/w-1-r-1");
  }
  SECTION("it was deleted after an earlier save") {
    CHECK(daemon.saveFirst(base).savedAs == "agent/w-1");
    world.git(path, "branch -q -D agent/w-1");
    world.commit(world.workspace(), "b", "b\n");
    auto saved = daemon.save("agent/w-1", tip, tip, "agent/w-1-r-2");
    CHECK(saved.savedAs == "agent/w-1-r-2");
    CHECK(world.tip(path, "agent/w-1") == "");
  }
  SECTION("it is checked out") {
    world.git(path, "symbolic-ref HEAD refs/heads/agent/w-1");
    kept("agent/w-1-r-1");
    world.git(path, "symbolic-ref HEAD refs/heads/main");
  }
  SECTION("it is checked out in a linked worktree") {
    world.git(path, "worktree add -q -b agent/w-1 " + world.at("linked"));
    kept("agent/w-1-r-1");
    CHECK(world.git(world.at("linked"), "status --porcelain") == "");
  }
  SECTION("it is being rebased") {
    put(path + "/.git/rebase-merge/head-name", "refs/heads/agent/w-1\n");
    kept("agent/w-1-r-1");
  }
  SECTION("a branch of a part of its name is in the way") {
    world.git(path, "branch agent main");
    auto saved = daemon.save("agent/w-1", base, none, "saved-w-1");
    CHECK(saved.savedAs == "saved-w-1");
    // And where no name is free, that is said, and nothing is left.
    auto refused = daemon.save("agent/w-1", base, none, "agent/w-1-r-1");
    CHECK(refused.refusal.reason == "save_failed");
    CHECK(refused.refusal.fix.find("rename") != std::string::npos);
    world.requireSound(path);
  }
}

TEST_CASE("a save that was done before its answer was heard is the same save") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  world.commit(world.workspace(), "a", std::string(3 << 20, 'x'));  // more than a pipe holds
  CHECK(daemon.saveFirst(base).savedAs == "agent/w-1");
  auto packs = shell("ls " + world.checkout() + "/.git/objects/pack").output;
  auto again = daemon.saveFirst(base);
  CHECK(again.refusal.reason == "");
  CHECK(again.savedAs == "agent/w-1");
  CHECK(shell("ls " + world.checkout() + "/.git/objects/pack").output == packs);
}

TEST_CASE("a lock of the operator's git is waited for; one that stays is told, and nothing is lost") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  world.commit(world.workspace(), "a", "a\n");
  auto lock = world.checkout() + "/.git/refs/heads/agent/w-1.lock";
  put(lock, "");
  SECTION("for a moment") {
    shell("( sleep 0.7; rm " + lock + " ) >/dev/null 2>&1 &");
    auto saved = daemon.saveFirst(base);
    INFO(saved.refusal.what);
    CHECK(saved.savedAs == "agent/w-1");
  }
  SECTION("for good") {
    auto saved = daemon.saveFirst(base);
    CHECK(saved.refusal.reason == "save_failed");
    CHECK(saved.refusal.what.find("w-1.lock") != std::string::npos);
    CHECK(saved.refusal.fix.find("lock") != std::string::npos);
    CHECK(world.tip(world.checkout(), "agent/w-1") == "");
    REQUIRE(unlink(lock.c_str()) == 0);
    world.requireSound(world.checkout());
    CHECK(daemon.saveFirst(base).savedAs == "agent/w-1");
  }
}

TEST_CASE("a lock that a killed git left is removed by the next save, a lock that somebody moves is not") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  world.commit(world.workspace(), "a", "a\n");
  auto heads = world.checkout() + "/.git/refs/heads/agent/";
  auto again = [&]() { return daemon.save("agent/w-1", base, none, "agent/w-1-r-1", 1ull << 30, true); };
  SECTION("on its branch") {
    put(heads + "w-1.lock", "");
    auto saved = again();
    INFO(saved.refusal.what);
    CHECK(saved.savedAs == "agent/w-1");
    CHECK(!exists(heads + "w-1.lock"));
  }
  SECTION("with what was to become of the branch in it") {
    put(heads + "w-1.lock", base + "\n");
    CHECK(again().savedAs == "agent/w-1");
    CHECK(world.tip(world.checkout(), "agent/w-1") == world.tip(world.workspace(), "HEAD"));
  }
  SECTION("on the branch to fall back on") {
    world.git(world.checkout(), "branch agent/w-1");
    put(heads + "w-1-r-1.lock", "");
    CHECK(again().savedAs == "agent/w-1-r-1");
  }
  SECTION("when it had moved the branch already, its quarantine goes") {
    CHECK(again().savedAs == "agent/w-1");
    put(world.checkout() + "/.git/objects/tmp_objdir-open-conduit-dead/pack/tmp_pack_1", "x");
    CHECK(again().savedAs == "agent/w-1");
  }
  SECTION("one that changes meanwhile is somebody's") {
    put(heads + "w-1.lock", "");
    shell("( sleep 1; echo >> " + heads + "w-1.lock ) >/dev/null 2>&1 &");
    CHECK(again().refusal.reason == "save_failed");
    REQUIRE(unlink((heads + "w-1.lock").c_str()) == 0);
  }
  SECTION("another branch's is let alone") {
    put(heads + "w-2.lock", "");
    CHECK(again().savedAs == "agent/w-1");
    REQUIRE(unlink((heads + "w-2.lock").c_str()) == 0);
  }
  world.requireSound(world.checkout());
}

TEST_CASE("hooks of the checkout do not run when a branch is saved, and its config has no say") {
  World world;
  world.makeCheckout();
  auto path = world.checkout();
  auto ran = world.at("ran");
  for (std::string hook :
       {"reference-transaction", "update", "pre-receive", "post-receive", "post-update", "post-index-change"}) {
    put(path + "/.git/hooks/" + hook, "#!/bin/sh\ntouch " + ran + "\n");
  }
  shell("chmod +x " + path + "/.git/hooks/*");
  world.git(path, "config core.fsmonitor 'touch " + ran + "'");
  world.git(path, "config gc.auto 1");
  unlink(ran.c_str());
  Daemon daemon(world);
  auto base = daemon.clone();
  world.commit(world.workspace(), "a", "a\n");
  CHECK(daemon.saveFirst(base).savedAs == "agent/w-1");
  CHECK(!exists(ran));
  // The positive control: the operator's own git runs them.
  world.git(path, "update-ref refs/heads/x main");
  CHECK(exists(ran));
}

TEST_CASE("a checkout that borrows objects takes a save as well") {
  World world;
  world.makeCheckout();
  auto other = world.at("a:odd \"other");
  REQUIRE(rename(world.checkout().c_str(), other.c_str()) == 0);
  shell(world.environment() + "git clone -q --shared " + shellQuote(other) + " " + world.checkout());
  Daemon daemon(world);
  auto base = daemon.clone();
  world.commit(world.workspace(), "a", "a\n");
  auto saved = daemon.saveFirst(base);
  INFO(saved.refusal.what);
  CHECK(saved.savedAs == "agent/w-1");
  world.requireSound(world.checkout());
}

TEST_CASE("a save that is larger than it may be is refused, and leaves nothing behind") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  shell("head -c 3000000 /dev/urandom > " + world.workspace() + "/big");  // it does not compress
  world.commit(world.workspace(), "small", "small\n");
  auto before = refs(world);
  auto count = world.git(world.checkout(), "count-objects -v");
  auto saved = daemon.save("agent/w-1", base, none, "agent/w-1-r-1", 1 << 20);
  INFO(saved.refusal.what);
  CHECK(saved.refusal.reason == "save_failed");
  CHECK(saved.refusal.what.find("size") != std::string::npos);
  CHECK(saved.refusal.fix.find("1048576") != std::string::npos);
  CHECK(refs(world) == before);
  CHECK(world.git(world.checkout(), "count-objects -v") == count);
  world.requireSound(world.checkout());
  CHECK(daemon.save("agent/w-1", base, none, "agent/w-1-r-1", 4 << 20).savedAs == "agent/w-1");
}

TEST_CASE("a quarantine whose maker was killed is swept by the next save; a live one is let alone") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  world.commit(world.workspace(), "a", "a\n");
  auto objects = world.checkout() + "/.git/objects";
  put(objects + "/tmp_objdir-open-conduit-dead/pack/tmp_pack_1", "x");
  put(objects + "/tmp_objdir-open-conduit-live/pack/tmp_pack_1", "x");
  put(objects + "/tmp_objdir-incoming-other/x", "x");
  auto live = openFile(objects + "/tmp_objdir-open-conduit-live", O_RDONLY | O_DIRECTORY);
  REQUIRE(flock(live.get(), LOCK_EX) == 0);
  CHECK(daemon.saveFirst(base).savedAs == "agent/w-1");
  CHECK(!exists(objects + "/tmp_objdir-open-conduit-dead"));
  CHECK(exists(objects + "/tmp_objdir-open-conduit-live"));
  CHECK(exists(objects + "/tmp_objdir-incoming-other"));
  live = nullptr;
  world.commit(world.workspace(), "b", "b\n");
  daemon.save("agent/w-1", base, world.tip(world.checkout(), "agent/w-1"), "agent/w-1-r-1");
  CHECK(!exists(objects + "/tmp_objdir-open-conduit-live"));
}

TEST_CASE("what the operator has is not replaced by what comes in") {
  World world;
  auto base = world.makeCheckout();
  auto path = world.checkout();
  auto object = path + "/.git/objects/" + base.substr(0, 2) + "/" + base.substr(2);
  auto before = statOf(object);
  Daemon daemon(world);
  daemon.clone();
  world.commit(world.workspace(), "a", "a\n");
  // A pack that brings the operator's own objects along once more.
  auto pack = world.at("all.pack");
  world.git(world.workspace(),
            "rev-parse HEAD | git -C " + world.workspace() + " pack-objects --revs --stdout > " + pack);
  auto saved = daemon.receive(pack, world.tip(world.workspace(), "HEAD"));
  INFO(saved.refusal.what);
  CHECK(saved.savedAs == "agent/w-1");
  auto after = statOf(object);
  CHECK(after.st_ino == before.st_ino);
  CHECK(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
  CHECK(after.st_size == before.st_size);
}
