// A workspace after a hostile agent, and packs from a hostile packer: nothing of theirs runs, and nothing unsound gets
// in.
#include "git_fixture.h"

using namespace oc;
using namespace oc::git;
using namespace oc::git::tests;

namespace {

// A workspace with one commit on its branch, and a program that leaves a mark when anybody runs it.
struct Hostile : World {
  Hostile() {
    makeCheckout();
    base = daemon.clone();
    commit(workspace(), "work", "work\n");
    head = tip(workspace(), "HEAD");
    put(evil, "#!/bin/sh\ntouch " + marker + "\nexit 1\n");
    shell("chmod +x " + evil);
  }

  std::string dotGit() const { return workspace() + "/.git"; }
  void config(const std::string& text) { std::ofstream(dotGit() + "/config", std::ios::app) << text; }

  // That the trap works: whoever runs a plain git there springs it.
  void requireSprings(const std::string& words) {
    auto ran = tryGit(workspace(), words);
    INFO("git " << words << "\n" << ran.output);
    CHECK(exists(marker));
    unlink(marker.c_str());
  }

  Saved save() { return daemon.saveFirst(base); }

  void requireSaves() {
    auto saved = save();
    INFO(saved.refusal.what);
    CHECK(saved.savedAs == "agent/w-1");
    CHECK(tip(checkout(), "agent/w-1") == head);
    CHECK(!exists(marker));
    requireSound(checkout());
  }

  void requireRefuses(const std::string& words) {
    auto before = git(checkout(), "for-each-ref") + git(checkout(), "count-objects -v");
    auto saved = save();
    INFO(saved.refusal.what);
    CHECK(saved.refusal.reason == "save_failed");
    CHECK(saved.refusal.what.find(words) != std::string::npos);
    CHECK(!hasControlCharacters(saved.refusal.what));
    CHECK(!exists(marker));
    CHECK(git(checkout(), "for-each-ref") + git(checkout(), "count-objects -v") == before);
    requireSound(checkout());
  }

  std::string objectPath(const std::string& id) const {
    return dotGit() + "/objects/" + id.substr(0, 2) + "/" + id.substr(2);
  }

  std::string marker = at("ran");
  std::string evil = at("evil");
  std::string base, head;
  Daemon daemon{*this};
};

}  // namespace

TEST_CASE("programs that a workspace's config names do not run when its branch is saved") {
  Hostile world;
  auto& evil = world.evil;
  SECTION("core.fsmonitor") {
    world.config("[core]\n\tfsmonitor = " + evil + "\n");
    world.requireSprings("status");
  }
  SECTION("by include.path") {
    put(world.workspace() + "/more", "[core]\n\tfsmonitor = " + evil + "\n");
    world.config("[include]\n\tpath = ../more\n[includeIf \"gitdir:**\"]\n\tpath = ../more\n");
    world.requireSprings("status");
  }
  SECTION("by config.worktree") {
    world.config("[extensions]\n\tworktreeConfig = true\n");
    put(world.dotGit() + "/config.worktree", "[core]\n\tfsmonitor = " + evil + "\n");
    world.requireSprings("status");
  }
  SECTION("by commondir") {
    shell("cp -r " + world.dotGit() + " " + world.workspace() + "/common");
    std::ofstream(world.workspace() + "/common/config", std::ios::app) << "[core]\n\tfsmonitor = " << evil << "\n";
    put(world.dotGit() + "/commondir", "../common\n");
    world.requireSprings("status");
  }
  SECTION("a filter") {
    world.config("[filter \"x\"]\n\tclean = " + evil + "\n\tsmudge = " + evil + "\n");
    put(world.workspace() + "/.gitattributes", "* filter=x\n");
    world.requireSprings("add -A");
    world.git(world.workspace(), "reset -q");
    unlink(world.marker.c_str());
  }
  SECTION("diff.external and a text conversion") {
    world.config("[diff]\n\texternal = " + evil + "\n[diff \"x\"]\n\ttextconv = " + evil + "\n");
    world.requireSprings("diff HEAD~1");
  }
  SECTION("hooks") {
    for (std::string hook : {"reference-transaction", "post-checkout", "pre-push", "pre-auto-gc"}) {
      REQUIRE(rename(evil.c_str(), (world.dotGit() + "/hooks/" + hook).c_str()) == 0);
      shell("cp " + world.dotGit() + "/hooks/" + hook + " " + evil);
    }
    world.requireSprings("update-ref refs/heads/y HEAD");
  }
  SECTION("core.hooksPath") {
    put(world.workspace() + "/h/reference-transaction", contents(evil));
    shell("chmod +x " + world.workspace() + "/h/*");
    world.config("[core]\n\thooksPath = h\n");
    world.requireSprings("update-ref refs/heads/y HEAD");
  }
  SECTION("core.worktree, a proxy, an editor, a pager") {
    world.config("[core]\n\tworktree = /etc\n\tgitProxy = " + evil + "\n\teditor = " + evil + "\n\tpager = " + evil +
                 "\n");
  }
  world.requireSaves();
}

TEST_CASE("objects that a workspace lacks are not fetched, by whatever its config names for that") {
  Hostile world;
  auto blob = world.git(world.workspace(), "rev-parse HEAD:work");
  REQUIRE(unlink(world.objectPath(blob).c_str()) == 0);
  std::string promisor = "[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\tpromisor = true\n";
  world.config("[core]\n\trepositoryformatversion = 1\n[protocol]\n\tallow = always\n");
  SECTION("core.sshCommand") {
    world.config(promisor + "\turl = ssh://h/x\n[core]\n\tsshCommand = " + world.evil +
                 "\n[protocol \"ssh\"]\n\tallow = always\n");
  }
  SECTION("uploadpack") {
    world.config(promisor + "\turl = " + world.checkout() + "\n\tuploadpack = " + world.evil +
                 "\n[protocol \"file\"]\n\tallow = always\n");
  }
  SECTION("ext::") {
    world.config(promisor + "\turl = ext::" + world.evil + "\n[protocol \"ext\"]\n\tallow = always\n");
  }
  world.requireSprings("cat-file -p " + blob);
  world.requireRefuses("cannot be packed");
}

TEST_CASE("a .git that is something else is refused") {
  Hostile world;
  auto moved = world.workspace() + "/.g2";
  REQUIRE(rename(world.dotGit().c_str(), moved.c_str()) == 0);
  std::ofstream(moved + "/config", std::ios::app) << "[core]\n\tfsmonitor = " << world.evil << "\n";
  SECTION("a file that names another directory") { put(world.dotGit(), "gitdir: .g2\n"); }
  SECTION("a link") { REQUIRE(symlink(".g2", world.dotGit().c_str()) == 0); }
  world.requireSprings("status");
  world.requireRefuses(".git is not a directory");
}

TEST_CASE("objects that are elsewhere are refused") {
  Hostile world;
  auto other = world.at("other");
  makeDirectories(other);
  world.git(other, "init -q -b main");
  world.commit(other, "secret", "secret\n");
  auto secret = world.tip(other, "main");
  SECTION("by alternates") {
    put(world.dotGit() + "/objects/info/alternates", other + "/.git/objects\n");
    world.git(world.workspace(), "reset -q --soft " + secret);  // a plain git takes it
    world.requireRefuses("alternates");
  }
  SECTION("by a link in place of the directory") {
    shell("cp -r " + world.dotGit() + "/objects/* " + other + "/.git/objects/");
    shell("rm -r " + world.dotGit() + "/objects");
    REQUIRE(symlink((other + "/.git/objects").c_str(), (world.dotGit() + "/objects").c_str()) == 0);
    world.git(world.workspace(), "reset -q --soft " + secret);
    world.requireRefuses("objects is not a directory");
  }
}

TEST_CASE("an object that is no file is refused, and nobody waits for it") {
  Hostile world;
  auto object = world.objectPath(world.tip(world.workspace(), "HEAD"));
  REQUIRE(unlink(object.c_str()) == 0);
  SECTION("a pipe") { REQUIRE(mkfifo(object.c_str(), 0600) == 0); }
  SECTION("a link to a pipe") {
    REQUIRE(mkfifo((world.workspace() + "/pipe").c_str(), 0600) == 0);
    REQUIRE(symlink((world.workspace() + "/pipe").c_str(), object.c_str()) == 0);
  }
  SECTION("a pipe among the packs") {
    REQUIRE(mkfifo((world.dotGit() + "/objects/pack/pack-1.idx").c_str(), 0600) == 0);
  }
  world.requireRefuses("is not a file or a directory of git's");
}

TEST_CASE("objects that the agent closed are refused by their name, and saved once they are opened as the fix says") {
  Hostile world;
  auto objects = world.dotGit() + "/objects";
  auto closed = objects;
  SECTION("all of them") {}
  SECTION("some") { closed += "/" + world.head.substr(0, 2); }
  REQUIRE(chmod(closed.c_str(), 0) == 0);
  auto refusal = world.save().refusal;
  REQUIRE(refusal.reason == "save_failed");
  CHECK(refusal.what == closed + " cannot be looked into: Permission denied");
  auto command = refusal.fix.substr(refusal.fix.find("chmod"));
  shell(command);
  world.requireSaves();
}

TEST_CASE("a branch that is no plain branch is refused") {
  Hostile world;
  auto ref = world.dotGit() + "/refs/heads/agent/w-1";
  auto gone = [&] { REQUIRE(unlink(ref.c_str()) == 0); };
  SECTION("a link to a file outside") {
    put(world.at("outside"), world.head + "\n");
    gone();
    REQUIRE(symlink(world.at("outside").c_str(), ref.c_str()) == 0);
    world.requireRefuses("links are not followed");
  }
  SECTION("below a link") {
    REQUIRE(rename((world.dotGit() + "/refs/heads/agent").c_str(), world.at("agent").c_str()) == 0);
    REQUIRE(symlink(world.at("agent").c_str(), (world.dotGit() + "/refs/heads/agent").c_str()) == 0);
    world.requireRefuses("has no branch");
  }
  SECTION("a reference to another ref") {
    world.git(world.workspace(), "branch other");
    put(ref, "ref: refs/heads/other\n");
    world.requireRefuses("commit's id");
  }
  SECTION("rubbish, with escapes for a terminal") {
    put(ref, "\x1b]52;c;aGk=\x07\n");
    world.requireRefuses("commit's id");
  }
  SECTION("endless") {
    put(ref, std::string(100000, 'a'));
    world.requireRefuses("more to read than allowed");
  }
  SECTION("a pipe that nobody writes to") {
    gone();
    REQUIRE(mkfifo(ref.c_str(), 0600) == 0);
    world.requireRefuses("not a regular file");
  }
  SECTION("a file") {
    put(ref, world.git(world.workspace(), "rev-parse HEAD:work") + "\n");
    world.requireRefuses("no commit");
  }
  SECTION("a tag") {
    world.git(world.workspace(), "tag -a t -m t");
    put(ref, world.git(world.workspace(), "rev-parse t") + "\n");
    world.requireRefuses("no commit");
  }
  SECTION("an object that is not there") {
    put(ref, std::string(40, 'a') + "\n");
    world.requireRefuses("no commit");
  }
  SECTION("not there") {
    gone();
    world.requireRefuses("has no branch");
  }
  SECTION("packed rubbish") {
    gone();
    put(world.dotGit() + "/packed-refs", "zzz refs/heads/agent/w-1\n");
    world.requireRefuses("commit's id");
  }
}

TEST_CASE("what a workspace says of its history besides the objects does not count") {
  Hostile world;
  auto w = world.workspace();
  world.commit(w, "more", "more\n");
  world.head = world.tip(w, "HEAD");
  SECTION("a replaced commit") {
    auto other = world.git(w, "commit-tree -m other HEAD~2^{tree}");
    world.git(w, "replace HEAD " + other);
    CHECK(world.git(w, "ls-tree --name-only HEAD") == "README");
  }
  SECTION("grafts") {
    put(world.dotGit() + "/info/grafts", world.head + "\n");
    CHECK(world.tryGit(w, "rev-list --count HEAD 2>/dev/null").output == "1");
  }
  SECTION("shallow") {
    put(world.dotGit() + "/shallow", world.head + "\n");
    CHECK(world.git(w, "rev-list --count HEAD") == "1");
  }
  SECTION("a broken commit graph") {
    world.git(w, "commit-graph write --reachable");
    auto graph = world.dotGit() + "/objects/info/commit-graph";
    REQUIRE(exists(graph));
    shell("chmod u+w " + graph + "; truncate -s 100 " + graph);
    CHECK(world.tryGit(w, "rev-list --count HEAD").output.find("commit-graph") != std::string::npos);
  }
  SECTION("a broken index, HEAD and config") {
    put(world.dotGit() + "/index", "x");
    put(world.dotGit() + "/HEAD", "x");
    put(world.dotGit() + "/config", "[[[");
    CHECK(world.tryGit(w, "status").code != 0);
  }
  SECTION("all refs packed") { world.git(w, "pack-refs --all"); }
  world.requireSaves();
  CHECK(world.git(world.checkout(), "show agent/w-1:more") == "more");
}

TEST_CASE("a workspace that lost the commit that it started at sends everything") {
  Hostile world;
  auto w = world.workspace();
  world.git(w, "checkout -q --orphan fresh");
  world.git(w, "commit -q -m fresh");
  world.git(w, "branch -q -M fresh agent/w-1");
  world.git(w, "reflog expire --expire=now --all");
  world.git(w, "gc -q --prune=now");
  REQUIRE(world.tryGit(w, "cat-file -e " + world.base).code != 0);
  world.head = world.tip(w, "HEAD");
  world.requireSaves();
}

namespace {

// What a packer that was taken over could send.
struct Packs : Hostile {
  // A commit with this tree, as an id.
  std::string commitOf(const std::string& tree) { return git(workspace(), "commit-tree -m x -p " + base + " " + tree); }
  std::string blob(const std::string& text) {
    put(at("blob"), text);
    return git(workspace(), "hash-object -w --literally -t blob " + at("blob"));
  }
  std::string tree(const std::string& entries) {
    put(at("tree"), entries);
    return git(workspace(), "mktree --missing < " + at("tree"));
  }
  std::string packOf(const std::string& tip) {
    auto pack = at("x.pack");
    auto ran = shell("printf '" + tip + "\\n^" + base + "\\n' | git --git-dir " + dotGit() +
                     " pack-objects -q --revs --stdout > " + pack);
    INFO(ran.output);
    REQUIRE(ran.code == 0);
    return pack;
  }
  std::string packOfObjects(const std::string& ids) {
    auto pack = at("x.pack");
    REQUIRE(shell("printf '" + ids + "\\n' | git --git-dir " + dotGit() + " pack-objects -q --stdout > " + pack).code ==
            0);
    return pack;
  }

  void requireReceiverRefuses(const std::string& pack, const std::string& tip, const std::string& words) {
    auto before = git(checkout(), "for-each-ref") + git(checkout(), "count-objects -v");
    auto saved = daemon.receive(pack, tip);
    INFO(saved.refusal.what);
    CHECK(saved.refusal.reason == "save_failed");
    CHECK(saved.refusal.what.find(words) != std::string::npos);
    CHECK(saved.savedAs == "");
    CHECK(git(checkout(), "for-each-ref") + git(checkout(), "count-objects -v") == before);
    requireSound(checkout());
  }

  // That a plain git, without our checks, takes it.
  void requireOtherwiseTaken(const std::string& pack) {
    shell("rm -rf " + at("plain") + "; cp -r " + checkout() + " " + at("plain"));
    auto ran = shell("git --git-dir " + at("plain") + "/.git index-pack --stdin < " + pack);
    INFO(ran.output);
    CHECK(ran.code == 0);
  }
};

}  // namespace

TEST_CASE("trees and files that are tricks on whoever checks them out are not taken in") {
  Packs world;
  auto file = world.blob("x\n");
  std::string tip;
  SECTION(".git in a tree") {
    auto inner = world.tree("100644 blob " + file + "\tconfig\n");
    tip = world.commitOf(world.tree("040000 tree " + inner + "\t.git\n"));
  }
  SECTION(".GIT in a tree") { tip = world.commitOf(world.tree("100644 blob " + file + "\t.GIT\n")); }
  SECTION("git~1 in a tree") { tip = world.commitOf(world.tree("100644 blob " + file + "\tgit~1\n")); }
  SECTION(".. in a tree") { tip = world.commitOf(world.tree("100644 blob " + file + "\t..\n")); }
  SECTION(".gitmodules with an address that is an option") {
    auto modules = world.blob("[submodule \"x\"]\n\tpath = x\n\turl = -u./payload\n");
    tip = world.commitOf(world.tree("100644 blob " + modules + "\t.gitmodules\n"));
  }
  SECTION(".gitmodules with a name that leads out") {
    auto modules = world.blob("[submodule \"../../x\"]\n\tpath = x\n\turl = https://example.org/x\n");
    tip = world.commitOf(world.tree("100644 blob " + modules + "\t.gitmodules\n"));
  }
  SECTION(".gitmodules as a link") {
    auto link = world.blob("elsewhere");
    tip = world.commitOf(world.tree("120000 blob " + link + "\t.gitmodules\n"));
  }
  auto pack = world.packOf(tip);
  world.requireOtherwiseTaken(pack);
  world.requireReceiverRefuses(pack, tip, "were not taken into");
}

TEST_CASE("what git fsck refuses is not taken in") {
  Packs world;
  auto file = world.blob("x\n");
  auto tree = world.git(world.workspace(), "rev-parse HEAD^{tree}");
  // An object of these very bytes.
  auto raw = [&world](const std::string& type, const std::string& bytes) {
    put(world.at("raw"), bytes);
    return world.git(world.workspace(), "hash-object -w --literally -t " + type + " " + world.at("raw"));
  };
  auto bytesOf = [](const std::string& id) {
    std::string bytes;
    for (size_t i = 0; i < id.size(); i += 2) bytes += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
    return bytes;
  };
  auto entry = [&](const std::string& mode, const std::string& name, const std::string& id) {
    return mode + " " + name + std::string(1, '\0') + bytesOf(id);
  };
  auto commitWith = [&](const std::string& lines) {
    return raw("commit", "tree " + tree + "\nparent " + world.base + "\n" + lines + "\nmessage\n");
  };
  std::string person = "A <a@example.org> 1700000000 +0000";
  std::string tip;
  SECTION("a link and a folder of one name") {
    auto link = world.blob("/etc");
    tip = world.commitOf(raw("tree", entry("120000", "a", link) + entry("40000", "a", tree)));
  }
  SECTION("names that are not in order") {
    tip = world.commitOf(raw("tree", entry("100644", "b", file) + entry("100644", "a", file)));
  }
  SECTION("a name with a slash") { tip = world.commitOf(raw("tree", entry("100644", "../../x", file))); }
  SECTION(".git with a character that is not seen") {
    tip = world.commitOf(raw("tree", entry("40000", ".g\u200cit", tree)));
  }
  SECTION(".git as another system reads it") {
    tip = world.commitOf(raw("tree", entry("40000", ".git::$INDEX_ALLOCATION", tree)));
  }
  SECTION("a mode that there is not") { tip = world.commitOf(raw("tree", entry("0", "a", file))); }
  SECTION("a commit without an author") { tip = commitWith("committer " + person + "\n"); }
  SECTION("a commit with two authors") {
    tip = commitWith("author " + person + "\nauthor " + person + "\ncommitter " + person + "\n");
  }
  SECTION("a commit whose author's date is none") {
    tip = commitWith("author A <a@example.org> 99999999999999999999 +0000\ncommitter " + person + "\n");
  }
  SECTION("a commit with a zero in its header") {
    tip =
        commitWith("author A" + std::string(1, '\0') + " <a@example.org> 1700000000 +0000\ncommitter " + person + "\n");
  }
  auto pack = world.packOf(tip);
  world.requireOtherwiseTaken(pack);
  auto fsck = shell("git --git-dir " + world.at("plain") + "/.git fsck --strict");
  INFO(fsck.output);
  CHECK(fsck.code != 0);
  world.requireReceiverRefuses(pack, tip, "were not taken into");
}

TEST_CASE("trees that are nested very deep and files that are very large when unpacked harm no checkout") {
  Packs world;
  std::string tip;
  auto import = [&world](const std::string& generator) {
    auto ran = shell(generator + " | git --git-dir " + world.dotGit() + " fast-import --quiet --force");
    INFO(ran.output);
    REQUIRE(ran.code == 0);
    return world.tip(world.workspace(), "refs/heads/agent/w-1");
  };
  auto commit =
      "commit refs/heads/agent/w-1\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nx\nfrom " + world.base + "\n";
  SECTION("2000 trees in each other") {
    tip = import("perl -e 'print \"" + commit + "M 100644 inline \", \"d/\" x 2000, \"f\\ndata 1\\nx\\n\"'");
    CHECK(world.git(world.workspace(), "ls-tree -r --name-only " + tip).size() > 4000);
  }
  SECTION("256 MiB that take no room in a pack") {
    tip = import("perl -e 'print \"" + commit +
                 "M 100644 inline big\\ndata 268435456\\n\"; print \"\\0\" x 1048576 for 1..256; print \"\\n\"'");
    CHECK(world.git(world.workspace(), "cat-file -s " + tip + ":big") == "268435456");
  }
  auto before = world.git(world.checkout(), "status --porcelain") + world.tip(world.checkout(), "HEAD");
  auto saved = world.save();
  INFO(saved.refusal.what);
  CHECK(saved.savedAs == "agent/w-1");
  CHECK(world.tip(world.checkout(), "agent/w-1") == tip);
  CHECK(world.git(world.checkout(), "status --porcelain") + world.tip(world.checkout(), "HEAD") == before);
  world.requireSound(world.checkout());
}

TEST_CASE("packs that are not whole or not what was said are not taken in") {
  Packs world;
  auto pack = world.packOf(world.head);
  SECTION("the positive control") {
    auto saved = world.daemon.receive(pack, world.head);
    INFO(saved.refusal.what);
    CHECK(saved.savedAs == "agent/w-1");
    world.requireSound(world.checkout());
  }
  SECTION("a changed byte") {
    auto bytes = contents(pack);
    bytes[bytes.size() / 2] ^= 1;
    put(pack, bytes);
    world.requireReceiverRefuses(pack, world.head, "were not taken into");
  }
  SECTION("cut") {
    put(pack, contents(pack).substr(0, 100));
    world.requireReceiverRefuses(pack, world.head, "were not taken into");
  }
  SECTION("empty") {
    put(pack, "");
    world.requireReceiverRefuses(pack, world.head, "were not taken into");
  }
  SECTION("no pack") {
    put(pack, std::string(5000, 'x'));
    world.requireReceiverRefuses(pack, world.head, "were not taken into");
  }
  SECTION("without the tip") { world.requireReceiverRefuses(pack, std::string(40, 'b'), "does not have"); }
  SECTION("a tip that is a file") {
    auto blob = world.git(world.workspace(), "rev-parse HEAD:work");
    world.requireReceiverRefuses(pack, blob, "does not have");
  }
  SECTION("a commit without its tree") {
    auto alone = world.packOfObjects(world.head);
    world.requireReceiverRefuses(alone, world.head, "were not taken into");
  }
  SECTION("a tree without its file") {
    auto tree = world.git(world.workspace(), "rev-parse HEAD^{tree}");
    auto two = world.packOfObjects(world.head + "\\n" + tree);
    world.requireReceiverRefuses(two, world.head, "");
  }
  SECTION("a parent that nobody has") {
    auto parent = world.git(world.workspace(), "commit-tree -m parent " + world.base + "^{tree}");
    auto child = world.git(world.workspace(), "commit-tree -m child -p " + parent + " " + world.base + "^{tree}");
    auto alone = world.packOfObjects(child);
    world.requireReceiverRefuses(alone, child, "");
  }
}

TEST_CASE("ids and names that are none are refused by the receiver") {
  Packs world;
  auto pack = world.packOf(world.head);
  auto ask = [&](const std::string& branch, const std::string& old, const std::string& tip,
                 const std::string& otherwise) {
    Served receiver(world.daemon.io, {"receive", "--checkout", world.checkout()}, openFile(pack, O_RDONLY));
    auto request = receiver.git().receiveRequest();
    request.setBranch(toText(branch));
    request.setOld(toText(old));
    request.setTip(toText(tip));
    request.setOtherwise(toText(otherwise));
    return receiver.refusal(kj::mv(request)).reason;
  };
  CHECK(ask("../../config", none, world.head, "x") == "branch_invalid");
  CHECK(ask("x", none, world.head, "--stdin") == "branch_invalid");
  CHECK(ask("x", none, "HEAD", "y") == "save_failed");
  CHECK(ask("x", "main", world.head, "y") == "save_failed");
  CHECK(ask("x", std::string(64, 'a'), world.head, "y") == "save_failed");
  CHECK(ask("x", none, none, "y") == "save_failed");
  CHECK(ask("x", none, world.head, "y") == "");
}
