// The git provider's contract: checkouts that Work can be made from, and workspaces made and removed.
#include "git_fixture.h"

using namespace oc;
using namespace oc::git;
using namespace oc::git::tests;

TEST_CASE("a checkout that Work can be made from is told with its head, branch and origin") {
  World world;
  auto head = world.makeCheckout();
  world.git(world.checkout(), "remote add origin https://bot:hunter2@example.org/a/b.git?token=hunter2");
  auto io = kj::setupAsyncIo();
  Served served(io, {"inspect", "--checkout", world.checkout()});
  auto answer = served.git().inspectRequest().send().wait(io.waitScope);
  CHECK(toString(answer.getRefusal().getReason()) == "");
  CHECK(toString(answer.getCheckout().getHead()) == head);
  CHECK(toString(answer.getCheckout().getBranch()) == "main");
  CHECK(toString(answer.getCheckout().getOrigin()) == "https://example.org/a/b.git");
}

TEST_CASE("A6 a checkout that no Work can be made from is refused, naming it and what to do") {
  World world;
  Daemon daemon(world);
  auto path = world.checkout();
  auto refused = [&](const std::string& path, const std::string& words) {
    auto refusal = daemon.inspect(path);
    INFO(refusal.what);
    CHECK(refusal.reason == "checkout_invalid");
    CHECK(refusal.what.find(path) != std::string::npos);
    CHECK(refusal.what.find(words) != std::string::npos);
    CHECK(refusal.fix != "");
  };
  SECTION("it does not exist") { refused(path, "does not exist"); }
  SECTION("a file") {
    put(path, "x");
    refused(path, "not a directory");
  }
  SECTION("no repository") {
    makeDirectories(path);
    refused(path, "no .git");
  }
  SECTION("below the top of one") {
    world.makeCheckout();
    makeDirectories(path + "/src");
    refused(path + "/src", "no .git");
  }
  SECTION("bare") {
    shell("git init -q --bare " + path);
    refused(path, "bare");
  }
  SECTION("bare by its config") {
    world.makeCheckout();
    world.git(path, "config core.bare true");
    refused(path, "bare");
  }
  SECTION("no commit") {
    makeDirectories(path);
    world.git(path, "init -q");
    refused(path, "no commit");
  }
  SECTION("a linked worktree") {
    world.makeCheckout();
    world.git(path, "worktree add -q -b other " + world.at("linked"));
    refused(world.at("linked"), "linked worktree");
    CHECK(daemon.inspect(world.at("linked")).fix.find(path) != std::string::npos);
  }
  SECTION("a submodule") {
    world.makeCheckout();
    auto outer = world.at("outer");
    makeDirectories(outer);
    world.git(outer, "init -q");
    world.git(outer, "-c protocol.file.allow=always submodule --quiet add " + path + " sub");
    refused(outer + "/sub", "submodule");
    refused(outer + "/.git/modules/sub", "within a .git");
  }
  SECTION("a partial clone") {
    world.makeCheckout();
    world.git(path, "config core.repositoryformatversion 1");
    world.git(path, "config extensions.partialClone origin");
    refused(path, "partial clone");
  }
  SECTION("an alternate that is gone") {
    world.makeCheckout();
    put(path + "/.git/objects/info/alternates", world.at("gone") + "\n");
    refused(path, world.at("gone"));
  }
  SECTION("a config that git cannot read") {
    world.makeCheckout();
    put(path + "/.git/config", "[core\n");
    refused(path, "config");
  }
}

TEST_CASE("A6 a checkout of another user is refused") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  CHECK(daemon.inspect(world.checkout()).reason == "");
  if (geteuid() == 0) {
    REQUIRE(chown(world.checkout().c_str(), 65534, 65534) == 0);
    auto refusal = daemon.inspect(world.checkout());
    CHECK(refusal.reason == "checkout_invalid");
    CHECK(refusal.what.find("not yours") != std::string::npos);
  } else {
    auto refusal = daemon.inspect("/usr");
    CHECK(refusal.reason == "checkout_invalid");
    CHECK(refusal.what.find("not yours") != std::string::npos);
  }
}

TEST_CASE("a checkout that is reached by a link is that checkout") {
  World world;
  world.makeCheckout();
  REQUIRE(symlink(world.checkout().c_str(), world.at("link").c_str()) == 0);
  Daemon daemon(world);
  CHECK(daemon.inspect(world.at("link")).reason == "");
}

TEST_CASE("a clone is on its branch, with the checkout's files and nothing of ours lying about") {
  World world;
  auto head = world.makeCheckout();
  Daemon daemon(world);
  auto made = daemon.make("clone", "agent/w-1");
  CHECK(made.refusal.reason == "");
  CHECK(made.base == head);
  CHECK(made.branch == "agent/w-1");
  auto w = world.workspace();
  CHECK(contents(w + "/README") == "one\n");
  CHECK(world.git(w, "symbolic-ref HEAD") == "refs/heads/agent/w-1");
  CHECK(world.git(w, "status --porcelain") == "");
  CHECK(world.git(w, "for-each-ref --format='%(refname)'") == "refs/heads/agent/w-1");
  world.requireSound(w);
  world.requireSound(world.checkout());
}

TEST_CASE("C6 a clone shares nothing with its checkout: no hard link, no alternate") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  SECTION("from loose objects") {}
  SECTION("from a pack") { world.git(world.checkout(), "repack -q -a -d"); }
  SECTION("from a checkout that borrows itself") {
    auto other = world.at("other");
    REQUIRE(rename(world.checkout().c_str(), other.c_str()) == 0);
    shell(world.environment() + "git clone -q --shared " + other + " " + world.checkout());
    REQUIRE(exists(world.checkout() + "/.git/objects/info/alternates"));
    world.commit(world.checkout(), "more", "more\n");
  }
  auto base = daemon.clone();
  auto w = world.workspace();
  CHECK(shell("find " + w + " -type f -links +1").output == "");
  CHECK(!exists(w + "/.git/objects/info/alternates"));
  // The positive control: git's own local clone links.
  shell(world.environment() + "git clone -q " + world.checkout() + " " + world.at("linked"));
  CHECK(shell("find " + world.at("linked") + "/.git/objects -type f -links +1").output != "");
  // And it stands alone.
  shell("rm -rf " + world.checkout() + " " + world.at("other"));
  world.requireSound(w);
  CHECK(world.git(w, "rev-parse HEAD") == base);
}

TEST_CASE("C7 a clone's .git has config, hooks and info of its own for a sandbox to protect") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  daemon.clone();
  auto git = world.workspace() + "/.git";
  CHECK(S_ISREG(statOf(git + "/config").st_mode));
  CHECK(S_ISDIR(statOf(git + "/hooks").st_mode));
  CHECK(S_ISDIR(statOf(git + "/info").st_mode));
  for (auto name : {"/hooks", "/modules", "/worktrees"}) CHECK(shell("ls -A " + git + name).output == "");
  CHECK(shell("cat " + git + "/config.worktree").output == "");
  CHECK(!exists(git + "/commondir"));
  // Commits need none of them to be writable.
  shell("chmod -R a-w " + git + "/config " + git + "/hooks " + git + "/info");
  world.commit(world.workspace(), "new", "new\n");
}

TEST_CASE("C12 the clone has the operator's remotes and tracks its branch: git push needs no config to be written") {
  World world;
  world.makeCheckout();
  world.addOrigin();
  auto path = world.checkout();
  world.git(path, "remote add up ../up.git");
  world.git(path, "config remote.up.uploadpack /bin/evil");
  world.git(path, "config user.name Operator");
  world.git(path, "config user.email 'operator@example.org'");
  world.git(path, "config alias.x '!echo no'");
  world.git(path, "tag -a v1 -m v1");
  world.git(path, "branch private");
  Daemon daemon(world);
  daemon.clone();
  auto w = world.workspace();
  CHECK(world.git(w, "remote") == "origin\nup");
  CHECK(world.git(w, "config remote.origin.url") == world.at("origin.git"));
  CHECK(world.git(w, "config remote.up.url") == world.at("up.git"));
  CHECK(world.tryGit(w, "config remote.up.uploadpack").code != 0);
  CHECK(world.tryGit(w, "config alias.x").code != 0);
  CHECK(world.git(w, "config user.name") == "Operator");
  CHECK(world.git(w, "config user.email") == "operator@example.org");
  CHECK(world.git(w, "config branch.agent/w-1.remote") == "origin");
  CHECK(world.git(w, "config branch.agent/w-1.merge") == "refs/heads/agent/w-1");
  CHECK(world.tip(w, "refs/remotes/origin/main") == world.tip(path, "main"));
  CHECK(world.git(w, "cat-file -t v1") == "tag");
  CHECK(world.tip(w, "refs/heads/private") == "");

  world.commit(w, "new", "new\n");
  world.git(w, "fetch -q origin");
  if (geteuid() != 0) shell("chmod a-w " + w + "/.git/config");
  auto before = contents(w + "/.git/config");
  world.git(w, "push -q");
  CHECK(contents(w + "/.git/config") == before);
  CHECK(world.tip(world.at("origin.git"), "refs/heads/agent/w-1") == world.tip(w, "HEAD"));
}

TEST_CASE("a remote's address is kept as it is, whatever is in it") {
  World world;
  world.makeCheckout();
  std::string url = R"(https://u:p"a\ss;#@example.org/x.git)";
  world.git(world.checkout(), "config remote.origin.url " + shellQuote(url));
  Daemon daemon(world);
  daemon.clone();
  CHECK(world.git(world.workspace(), "config remote.origin.url") == url);
}

TEST_CASE("a clone starts where it was told to") {
  World world;
  auto first = world.makeCheckout();
  world.git(world.checkout(), "tag -a v1 -m v1");
  world.commit(world.checkout(), "second", "2\n");
  Daemon daemon(world);
  auto made = daemon.make("clone", "agent/w-1", "v1");
  CHECK(made.refusal.reason == "");
  CHECK(made.base == first);
  CHECK(!exists(world.workspace() + "/second"));
  CHECK(daemon.remove().reason == "");
  for (std::string start : {"nowhere", "--all", "-x", "v1\n"}) {
    auto refusal = daemon.make("clone", "agent/w-1", start).refusal;
    INFO(start << ": " << refusal.what);
    CHECK(refusal.reason == "workspace_failed");
    CHECK(refusal.what.find("no commit of") != std::string::npos);
    CHECK(!exists(world.workspace()));
  }
}

TEST_CASE("what the branch has that Work began from, and the Work has not, is counted") {
  World world;
  auto first = world.makeCheckout();
  Daemon daemon(world);
  auto made = daemon.make("clone", "agent/w-1");
  CHECK(made.from == "main");
  CHECK(daemon.missing("main", first) == 0);
  world.commit(world.checkout(), "second", "2\n");
  world.commit(world.checkout(), "third", "3\n");
  CHECK(daemon.missing("main", first) == 2);
  CHECK(daemon.missing("main", world.tip(world.checkout(), "main")) == 0);
  // Words that git could take for something else, and what is not there.
  for (std::string branch : {"gone", "", "-x", "--all", "main..main", "main\n"})
    CHECK(daemon.missing(branch, first) == 0);
  for (std::string tip : std::vector<std::string>{"", "main", "--not", std::string(40, '1')})
    CHECK(daemon.missing("main", tip) == 0);

  CHECK(daemon.remove().reason == "");
  CHECK(daemon.make("clone", "agent/w-1", first).from == "");
  CHECK(daemon.remove().reason == "");
  world.git(world.checkout(), "checkout -q --detach");
  CHECK(daemon.make("clone", "agent/w-1").from == "");
}

TEST_CASE("a branch name that git refuses is refused, and nothing is made") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  for (std::string name : {"", "-x", "HEAD", "a..b", "a b", "a.lock", "a/", "/a", "a//b", "a~1", "a^", "a:b", "a\nb",
                           "a\x1b[2J", "@{-1}", "@", ".a", "a\\b"}) {
    for (auto role : {"clone", "worktree"}) {
      auto refusal = daemon.make(role, name).refusal;
      INFO(name);
      CHECK(refusal.reason == "branch_invalid");
      CHECK(!hasControlCharacters(refusal.what));
      CHECK(refusal.fix != "");
      CHECK(!exists(world.workspace()));
    }
  }
  CHECK(daemon.make("clone", std::string(201, 'a')).refusal.reason == "branch_invalid");
  for (std::string name : {"agent/issue-7", "ünï", "a\"b", "a'b;c"}) {
    INFO(name);
    CHECK(daemon.make("clone", name).refusal.reason == "");
    CHECK(world.git(world.workspace(), "status --porcelain") == "");
    CHECK(daemon.remove().reason == "");
  }
}

TEST_CASE("nothing half-made is left when a clone fails") {
  World world;
  world.makeCheckout();
  world.commit(world.checkout(), "big", std::string(100000, 'x'));
  Daemon daemon(world);
  SECTION("the checkout has lost an object") {
    auto blob = world.git(world.checkout(), "rev-parse HEAD:big");
    REQUIRE(unlink((world.checkout() + "/.git/objects/" + blob.substr(0, 2) + "/" + blob.substr(2)).c_str()) == 0);
    auto made = daemon.make("clone", "agent/w-1");
    CHECK(made.refusal.reason == "workspace_failed");
    CHECK(!exists(world.workspace()));
  }
  SECTION("the workspace is there already: it is not touched") {
    put(world.workspace() + "/precious", "x");
    auto made = daemon.make("clone", "agent/w-1");
    CHECK(made.refusal.reason == "workspace_failed");
    CHECK(made.refusal.what.find("not empty") != std::string::npos);
    CHECK(contents(world.workspace() + "/precious") == "x");
  }
  SECTION("its parent is not there") {
    removeTree(world.at("work"));
    CHECK(daemon.make("clone", "agent/w-1").refusal.reason == "workspace_failed");
  }
}

TEST_CASE("a shallow checkout makes a shallow clone, and its commits come back") {
  World world;
  auto full = world.at("full");
  makeDirectories(full);
  world.git(full, "init -q -b main");
  for (int i = 0; i < 4; ++i) world.commit(full, "file", std::to_string(i));
  shell(world.environment() + "git clone -q --depth 1 file://" + full + " " + world.checkout());
  Daemon daemon(world);
  auto base = daemon.clone();
  CHECK(world.git(world.workspace(), "rev-list --count HEAD") == "1");
  world.commit(world.workspace(), "new", "new\n");
  auto saved = daemon.saveFirst(base);
  INFO(saved.refusal.what);
  CHECK(saved.savedAs == "agent/w-1");
  CHECK(saved.commits == 1);
  world.requireSound(world.checkout());
}

TEST_CASE("a checkout with SHA-256 ids works alike") {
  World world;
  world.makeCheckout("--object-format=sha256");
  Daemon daemon(world);
  auto base = daemon.clone();
  CHECK(base.size() == 64);
  world.commit(world.workspace(), "new", "new\n");
  auto saved = daemon.saveFirst(base);
  INFO(saved.refusal.what);
  CHECK(saved.savedAs == "agent/w-1");
  CHECK(world.tip(world.checkout(), "agent/w-1") == world.tip(world.workspace(), "HEAD"));
}

TEST_CASE("hooks, filters and other programs of the checkout's config do not run while it is cloned") {
  World world;
  world.makeCheckout();
  auto path = world.checkout();
  auto ran = world.at("ran");
  auto touch = "touch " + ran + ";cat";
  world.commit(path, ".gitattributes", "* filter=x\n");
  world.git(path, "config filter.x.smudge " + shellQuote(touch));
  world.git(path, "config core.fsmonitor " + shellQuote(touch));
  world.git(path, "config uploadpack.packObjectsHook " + shellQuote(touch));
  put(path + "/.git/hooks/post-checkout", "#!/bin/sh\n" + touch + "\n");
  shell("chmod +x " + path + "/.git/hooks/post-checkout");
  Daemon daemon(world);
  daemon.clone();
  CHECK(!exists(ran));
  // The positive control: in the checkout they do.
  world.git(path, "checkout -q -f -b elsewhere");
  CHECK(exists(ran));
}

TEST_CASE("a linked worktree is on its branch, and goes with its entry") {
  World world;
  auto head = world.makeCheckout();
  world.addOrigin();
  world.git(world.checkout(), "worktree add -q -b mine " + world.at("mine"));
  Daemon daemon(world);
  auto made = daemon.make("worktree", "agent/w-1");
  INFO(made.refusal.what);
  CHECK(made.refusal.reason == "");
  CHECK(made.base == head);
  world.commit(world.workspace(), "new", "new\n");
  CHECK(world.tip(world.checkout(), "agent/w-1") == world.tip(world.workspace(), "HEAD"));
  world.git(world.workspace(), "push -q");

  CHECK(daemon.remove(true).reason == "");
  CHECK(!exists(world.workspace()));
  CHECK(shell("ls " + world.checkout() + "/.git/worktrees").output == "mine");
  CHECK(world.tip(world.checkout(), "agent/w-1") != "");

  SECTION("a branch that is there already is refused") {
    auto again = daemon.make("worktree", "agent/w-1");
    CHECK(again.refusal.reason == "branch_invalid");
    CHECK(!exists(world.workspace()));
    CHECK(world.tip(world.checkout(), "agent/w-1") != "");
  }
  SECTION("one whose maker was killed is made again") {
    world.git(world.checkout(), "branch agent/w-2");
    put(world.checkout() + "/.git/refs/heads/agent/w-2.lock", "");
    auto again = daemon.make("worktree", "agent/w-2", "", true);
    INFO(again.refusal.what);
    CHECK(again.base == head);
    CHECK(world.tip(world.workspace(), "HEAD") == head);
  }
  SECTION("but not a branch that has something else") {
    auto again = daemon.make("worktree", "agent/w-1", "", true);
    CHECK(again.refusal.reason == "branch_invalid");
    CHECK(world.tip(world.checkout(), "agent/w-1") != head);
  }
  SECTION("one that fails leaves no branch and no entry") {
    // A file that cannot be checked out: its object is gone.
    world.commit(world.checkout(), "big", "big\n");
    auto blob = world.git(world.checkout(), "rev-parse HEAD:big");
    REQUIRE(unlink((world.checkout() + "/.git/objects/" + blob.substr(0, 2) + "/" + blob.substr(2)).c_str()) == 0);
    auto failed = daemon.make("worktree", "agent/w-2");
    CHECK(failed.refusal.reason == "workspace_failed");
    CHECK(!exists(world.workspace()));
    CHECK(world.tip(world.checkout(), "agent/w-2") == "");
    CHECK(shell("ls " + world.checkout() + "/.git/worktrees").output == "mine");
  }
}

TEST_CASE("a workspace is removed whatever its maker did to it, and nothing else") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  daemon.clone();
  auto w = world.workspace();
  put(world.at("outside/precious"), "x");
  SECTION("links to the outside") {
    REQUIRE(symlink(world.at("outside").c_str(), (w + "/link").c_str()) == 0);
    REQUIRE(link(world.at("outside/precious").c_str(), (w + "/hard").c_str()) == 0);
  }
  SECTION("closed directories") {
    put(w + "/a/b/c", "x");
    shell("chmod 000 " + w + "/a/b " + w + "/a");
  }
  SECTION("deeper than descriptors last, with the names that removing would use") {
    put(w + "/.open-conduit-removed-0/file", "x");
    put(w + "/.open-conduit-removed-1", "x");
    shell("cd " + w + "; i=0; while [ $i -lt 3000 ]; do mkdir d; cd -P d; i=$((i+1)); done; touch leaf");
    CHECK(shell("find " + w + " -name leaf | wc -l").output == "1");
  }
  SECTION("many files") {
    shell("cd " + w + "; seq 1 7000 | xargs touch; mkdir sub; cd sub; seq 1 3000 | xargs mkdir");
  }
  auto refusal = daemon.remove();
  INFO(refusal.what);
  CHECK(refusal.reason == "");
  CHECK(!exists(w));
  CHECK(contents(world.at("outside/precious")) == "x");
  CHECK(daemon.remove().reason == "");  // it is not there: no error
  CHECK(world.tryGit(world.checkout(), "status --porcelain").output == "");
}

TEST_CASE("a method that the role does not have fails") {
  World world;
  world.makeCheckout();
  auto io = kj::setupAsyncIo();
  Served served(io, {"inspect", "--checkout", world.checkout()});
  CHECK_THROWS(served.git().removeRequest().send().wait(io.waitScope));
  CHECK_THROWS(served.git().scanRequest().send().wait(io.waitScope));
  CHECK_THROWS(served.git().cloneRequest().send().wait(io.waitScope));
  CHECK(toString(served.git().inspectRequest().send().wait(io.waitScope).getRefusal().getReason()) == "");
}

TEST_CASE("a job with a wrong word, a relative path or a path with control characters is refused") {
  using Words = std::vector<std::string>;
  for (auto& words :
       {Words{}, Words{"push"}, Words{"inspect"}, Words{"inspect", "--checkout", "a"},
        Words{"inspect", "--checkout", "/"}, Words{"inspect", "--checkout", "/a\nb"},
        Words{"inspect", "--checkout", "/a", "--workspace", "/b"}, Words{"clone", "--checkout", "/a"},
        Words{"clone", "--checkout", "/a", "--workspace", "/a/b"}, Words{"scan", "--workspace"},
        Words{"receive", "--checkout", "/a", "--max-size", "1x"}, Words{"scan", "--workspace", "/a", "-v", "1"}}) {
    CHECK_THROWS_AS(parseJob(words), kit::UsageError);
  }
  Job job = parseJob({"receive", "--checkout", "/a//b/", "--max-size", "5"});
  CHECK(job.checkout == "/a/b");
  CHECK(job.maxSize == 5);
  CHECK(jobWords(job) == Words{"receive", "--checkout", "/a/b", "--max-size", "5"});
}

TEST_CASE("credentials are left out of an address that is shown") {
  CHECK(withoutCredentials("https://u:p@h/x.git") == "https://h/x.git");
  CHECK(withoutCredentials("https://token@h:8443/x@y") == "https://h:8443/x@y");
  CHECK(withoutCredentials("https://a@b:c@h/x#f?t") == "https://h/x");
  CHECK(withoutCredentials("ssh://git:p@h/x") == "ssh://git@h/x");
  CHECK(withoutCredentials("git@github.com:a/b.git") == "git@github.com:a/b.git");
  CHECK(withoutCredentials("/srv/x.git") == "/srv/x.git");
  CHECK(withoutCredentials("https://h") == "https://h");
  CHECK(withoutCredentials("https://") == "https://");
}
