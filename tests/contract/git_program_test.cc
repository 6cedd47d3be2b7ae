// The real open-conduit-git, locked down: the same contract holds there, and what a taken-over git could reach is
// little.
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "base/procfs.h"
#include "base/spawn.h"
#include "git_fixture.h"
#include "providers/git/profile.h"
#include "providers/kit/handshake.h"
#include "providers/kit/lockdown.h"

using namespace oc;
using namespace oc::git;
using namespace oc::git::tests;

namespace {

std::string program() {
  const char* directory = getenv("OPEN_CONDUIT_PROGRAMS");
  REQUIRE(directory != nullptr);
  return std::string(directory) + "/open-conduit-git";
}

// As the daemon starts it.
struct Instance {
  Instance(kj::AsyncIoContext& io, std::vector<std::string> job, std::vector<std::pair<int, int>> descriptors = {}) {
    auto pair = makeSocketPair();
    SpawnSpec spec;
    spec.program = program();
    spec.arguments = {"--instance", "--"};
    spec.arguments.insert(spec.arguments.end(), job.begin(), job.end());
    spec.descriptors = descriptors;
    spec.descriptors.emplace_back(pair.second.get(), 3);
    spawned = spawn(spec);
    pair.second = nullptr;
    auto stream = io.lowLevelProvider->wrapSocketFd(kj::mv(pair.first));
    auto handshake = readHandshake(*stream, [this](pid_t pid) { serving = pid; }).wait(io.waitScope);
    INFO(handshake.failure);
    REQUIRE(handshake.ready);
    connection = kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "git");
  }
  ~Instance() noexcept(false) {
    if (connection.get() != nullptr) end(0);
  }

  proto::Git::Client git() { return connection->bootstrapOfPeer().castAs<proto::Git>(); }

  void end(int signal) {
    if (signal != 0) kill(serving, signal);
    connection = nullptr;
    int status;
    if (serving != spawned.pid) waitpid(serving, &status, 0);
    waitpid(spawned.pid, &status, 0);
  }

  Spawned spawned{-1, nullptr};
  pid_t serving = 0;
  kj::Own<Connection> connection;
};

// What `tries` says, from a process that is locked down for this job.
std::string lockedDown(const std::vector<std::string>& job, std::function<std::string()> tries) {
  auto pipe = makePipe();
  constexpr int report = 9;
  auto profile = profileOf(parseJob(job));
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(pipe.second.get(), report);
    try {
      kit::lockDown(profile, report, [](pid_t) {});
      writeAll(report, tries());
    } catch (const kj::Exception& exception) {
      writeAll(report, describe(exception));
    }
    _exit(0);
  }
  pipe.second = nullptr;
  auto text = readAll(pipe.first.get(), 1 << 20);
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return text;
}

const char* yesNo(bool yes) { return yes ? "yes " : "no "; }
bool canOpen(const std::string& path, int flags) {
  int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd >= 0) close(fd);
  return fd >= 0;
}
bool canMake(const std::string& path) {
  bool made = canOpen(path, O_WRONLY | O_CREAT | O_EXCL);
  if (made) unlink(path.c_str());
  return made;
}
bool canSocket() {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}
bool canRun() {
  pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <typename Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    usleep(10000);
  }
  return false;
}

}  // namespace

TEST_CASE("G3 by hand, the program clones, packs, receives, scans and removes, locked down") {
  World world;
  auto base = world.makeCheckout();
  world.addOrigin();
  auto run = [&](const std::string& words) { return shell(program() + " " + words); };
  auto places = " --checkout " + world.checkout() + " --workspace " + world.workspace() + " ";

  auto checked = run("check");
  CHECK(checked.code == 0);
  CHECK(checked.output.find("git version 2.") != std::string::npos);
  auto seen = run("inspect --json --checkout " + world.checkout());
  INFO(seen.output);
  CHECK(seen.code == 0);
  CHECK(seen.output.find("\"head\": \"" + base + "\"") != std::string::npos);

  auto cloned = run("clone" + places + "--branch agent/w-1");
  INFO(cloned.output);
  REQUIRE(cloned.code == 0);
  CHECK(contents(world.workspace() + "/README") == "one\n");
  CHECK(run("scan --workspace " + world.workspace()).code == 0);

  world.commit(world.workspace(), "a", "a\n");
  auto tip = world.tip(world.workspace(), "HEAD");
  auto pack = world.at("pack");
  auto packed = run("pack --workspace " + world.workspace() + " --branch agent/w-1 --base " + base + " > " + pack);
  INFO(packed.output);
  REQUIRE(packed.code == 0);
  CHECK(packed.output.find(tip) != std::string::npos);
  CHECK(!exists(world.workspace() + ".git-view"));
  auto received = run("receive --checkout " + world.checkout() + " --branch agent/w-1 --tip " + tip + " < " + pack);
  INFO(received.output);
  REQUIRE(received.code == 0);
  CHECK(received.output.find("agent/w-1") != std::string::npos);
  CHECK(world.tip(world.checkout(), "agent/w-1") == tip);
  world.requireSound(world.checkout());

  auto removed = run("remove --workspace " + world.workspace());
  INFO(removed.output);
  CHECK(removed.code == 0);
  CHECK(!exists(world.workspace()));

  auto added = run("worktree" + places + "--branch agent/w-2");
  INFO(added.output);
  CHECK(added.code == 0);
  world.commit(world.workspace(), "b", "b\n");
  CHECK(run("remove" + places).code == 0);
  CHECK(!exists(world.workspace()));
  CHECK(shell("ls " + world.checkout() + "/.git/worktrees").output == "");
}

TEST_CASE("the program's exit codes: 1 for a refusal with its reason, 2 for wrong usage") {
  World world;
  auto refused = shell(program() + " inspect --json --checkout " + world.at("none"));
  CHECK(refused.code == 1);
  CHECK(refused.output.find("\"reason\": \"checkout_invalid\"") != std::string::npos);
  auto told = shell(program() + " inspect --checkout " + world.at("none"));
  CHECK(told.code == 1);
  CHECK(told.output.find("checkout_invalid") != std::string::npos);
  CHECK(told.output.find("fix") != std::string::npos);
  for (std::string words : {"", "frobnicate", "inspect", "clone --checkout /a --workspace /b", "inspect --checkout"}) {
    CHECK(shell(program() + " " + words).code == 2);
  }
  CHECK(shell(program() + " --help").code == 0);
}

TEST_CASE("G3 an instance has its protections in force") {
  World world;
  world.makeCheckout();
  auto io = kj::setupAsyncIo();
  Instance instance(io, {"inspect", "--checkout", world.checkout()});
  auto answer = instance.git().protectionsRequest().send().wait(io.waitScope);
  auto in = answer.getProtections();
  CHECK(in.getNoNewPrivs());
  CHECK(in.getNotDumpable());
  CHECK(in.getSeccomp());
  CHECK(in.getLandlockFiles());
  CHECK(read(instance.git().inspectRequest().send().wait(io.waitScope).getRefusal()).reason == "");
}

TEST_CASE("G3 what an instance could reach if its git were taken over") {
  World world;
  world.makeCheckout();
  auto path = world.checkout();
  auto dotGit = path + "/.git";
  put(world.at("secret"), "x");
  auto w = world.workspace();
  SECTION("receive: new objects and branches; not the config, hooks, HEAD, tags, files, network") {
    auto tries = [&] {
      std::string can;
      can += yesNo(canOpen(dotGit + "/config", O_RDONLY)) + std::string(yesNo(canMake(dotGit + "/objects/x")));
      can += yesNo(canMake(dotGit + "/refs/heads/x"));
      can += "| ";
      can += yesNo(canOpen(dotGit + "/config", O_WRONLY));
      can += yesNo(canOpen(dotGit + "/HEAD", O_WRONLY));
      can += yesNo(canMake(dotGit + "/hooks/x"));
      can += yesNo(canMake(dotGit + "/refs/tags/x"));
      can += yesNo(canMake(dotGit + "/commondir"));
      can += yesNo(canOpen(path + "/README", O_WRONLY));
      can += yesNo(canOpen(world.at("secret"), O_RDONLY));
      can += yesNo(canSocket());
      return can;
    };
    CHECK(lockedDown({"receive", "--checkout", path}, tries) == "yes yes yes | no no no no no no no no ");
    CHECK(tries() == "yes yes yes | yes yes yes yes yes yes yes yes ");
  }
  SECTION("clone: reads the checkout, writes the workspace, and is in its parent with that name only") {
    auto tries = [&] {
      std::string can;
      can += yesNo(canOpen(path + "/README", O_RDONLY)) + std::string(yesNo(canMake(w + "/x")));
      can += yesNo(canRun());
      can += "| ";
      can += yesNo(canOpen(path + "/README", O_WRONLY));
      can += yesNo(canMake(dotGit + "/objects/x"));
      can += yesNo(canMake(world.at("work/x")));
      can += yesNo(canOpen(world.at("secret"), O_RDONLY));
      can += yesNo(canSocket());
      return can;
    };
    std::vector<std::string> job = {"clone", "--checkout", path, "--workspace", w};
    CHECK(lockedDown(job, tries) == "yes yes yes | no no no no no ");
    CHECK(tries() == "yes yes yes | yes yes yes yes yes ");
  }
  SECTION("pack: reads the workspace, and nothing else") {
    Daemon(world).clone();
    auto tries = [&] {
      std::string can;
      can += yesNo(canOpen(w + "/README", O_RDONLY)) + std::string(yesNo(canRun()));
      can += "| ";
      can += yesNo(canOpen(w + "/README", O_WRONLY));
      can += yesNo(canMake(w + "/.git/objects/x"));
      can += yesNo(canOpen(path + "/README", O_RDONLY));
      can += yesNo(canOpen(world.at("secret"), O_RDONLY));
      can += yesNo(canSocket());
      return can;
    };
    CHECK(lockedDown({"pack", "--workspace", w}, tries) == "yes yes | no no no no no ");
    CHECK(tries() == "yes yes | yes yes yes yes yes ");
  }
  SECTION("scan and remove: run no program at all") {
    Daemon(world).clone();
    auto tries = [&] { return std::string(yesNo(canRun())) + yesNo(canOpen(world.at("secret"), O_RDONLY)); };
    CHECK(lockedDown({"scan", "--workspace", w}, tries) == "no no ");
    CHECK(lockedDown({"remove", "--workspace", w}, tries) == "no no ");
    CHECK(tries() == "yes yes ");
  }
}

TEST_CASE("A8 links from a workspace's objects to what is outside lead nowhere") {
  World world;
  auto base = world.makeCheckout();
  Daemon daemon(world);
  daemon.clone();
  auto other = world.at("other");
  makeDirectories(other);
  world.git(other, "init -q -b main");
  world.commit(other, "secret", "secret\n");
  auto secret = world.tip(other, "main");
  auto objects = world.workspace() + "/.git/objects/";
  SECTION("a directory of objects") {
    for (auto id : {secret, world.git(other, "rev-parse main^{tree}"), world.git(other, "rev-parse main:secret")}) {
      auto at = objects + id.substr(0, 2);
      if (!exists(at)) REQUIRE(symlink((other + "/.git/objects/" + id.substr(0, 2)).c_str(), at.c_str()) == 0);
    }
  }
  SECTION("the directory of packs") {
    world.git(other, "repack -q -a -d");
    shell("cp " + objects + "pack/* " + other + "/.git/objects/pack/; rm -r " + objects + "pack");
    REQUIRE(symlink((other + "/.git/objects/pack").c_str(), (objects + "pack").c_str()) == 0);
  }
  put(world.workspace() + "/.git/refs/heads/agent/w-1", secret + "\n");
  auto words =
      " pack --workspace " + world.workspace() + " --branch agent/w-1 --base " + base + " > " + world.at("pack");
  auto packed = shell(program() + words);
  INFO(packed.output);
  CHECK(packed.code == 1);
  CHECK(packed.output.find("save_failed") != std::string::npos);
  CHECK(contents(world.at("pack")) == "");
  // The positive control: without the lockdown, a git follows them.
  CHECK(world.git(world.workspace(), "cat-file -p " + secret + ":secret") == "secret");
}

TEST_CASE("an instance answers while its git works") {
  World world;
  world.makeCheckout();
  auto io = kj::setupAsyncIo();
  auto pipe = makePipe();
  Instance instance(io, {"receive", "--checkout", world.checkout()}, {{pipe.first.get(), 0}});
  pipe.first = nullptr;
  auto request = instance.git().receiveRequest();
  request.setBranch("x");
  request.setOld(toText(none));
  request.setTip(toText(std::string(40, 'a')));
  request.setOtherwise("y");
  auto received = request.send();
  REQUIRE(soon([&] {
    io.waitScope.poll();
    return shell("ls -d " + world.checkout() + "/.git/objects/tmp_objdir*").code == 0;
  }));
  CHECK(instance.git().protectionsRequest().send().wait(io.waitScope).getProtections().getSeccomp());
  pipe.second = nullptr;  // nothing comes: an empty pack
  CHECK(read(received.wait(io.waitScope).getRefusal()).reason == "save_failed");
  world.requireSound(world.checkout());
}

TEST_CASE("kill -9 in the middle of a save leaves the checkout sound, no git behind, and the next save works") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  shell("head -c 300000 /dev/urandom > " + world.workspace() + "/big");
  world.commit(world.workspace(), "a", "a\n");
  auto tip = world.tip(world.workspace(), "HEAD");
  auto pack = shell(program() + " pack --workspace " + world.workspace() + " --branch agent/w-1 --base " + base +
                    " 2>/dev/null > " + world.at("pack"));
  REQUIRE(pack.code == 0);
  auto pipe = makePipe();
  pid_t git = 0;
  {
    Instance instance(daemon.io, {"receive", "--checkout", world.checkout()}, {{pipe.first.get(), 0}});
    pipe.first = nullptr;
    auto request = instance.git().receiveRequest();
    request.setBranch("agent/w-1");
    request.setOld(toText(none));
    request.setTip(toText(tip));
    request.setOtherwise("agent/w-1-r-1");
    auto received = request.send();
    writeAll(pipe.second.get(), contents(world.at("pack")).substr(0, 60000));
    REQUIRE(soon([&] {
      daemon.io.waitScope.poll();
      return shell("ls " + world.checkout() + "/.git/objects/tmp_objdir*/pack/tmp_pack*").code == 0;
    }));
    auto children = descendants(instance.serving);
    REQUIRE(!children.empty());
    git = children[0];
    instance.end(SIGKILL);
    CHECK_THROWS(received.wait(daemon.io.waitScope));
  }
  CHECK(soon([&] { return !readProcessStatus(git) || readProcessStatus(git)->state == 'Z'; }));
  CHECK(world.git(world.checkout(), "fsck --full --strict") == "");
  CHECK(world.tip(world.checkout(), "agent/w-1") == "");
  auto saved = daemon.saveFirst(base);
  INFO(saved.refusal.what);
  CHECK(saved.savedAs == "agent/w-1");
  world.requireSound(world.checkout());
}

TEST_CASE("kill -9 in the middle of a clone: it can be removed and made anew") {
  World world;
  world.makeCheckout();
  shell("head -c 20000000 /dev/urandom > " + world.checkout() + "/big");
  world.commit(world.checkout(), "a", "a\n");
  Daemon daemon(world);
  {
    Instance instance(daemon.io, {"clone", "--checkout", world.checkout(), "--workspace", world.workspace()});
    auto request = instance.git().cloneRequest();
    request.setBranch("agent/w-1");
    auto made = request.send();
    REQUIRE(soon([&] {
      daemon.io.waitScope.poll();
      return exists(world.workspace() + "/.git/config");
    }));
    instance.end(SIGKILL);
  }
  CHECK(world.git(world.checkout(), "fsck --full --strict") == "");
  auto again = shell(program() + " clone --checkout " + world.checkout() + " --workspace " + world.workspace() +
                     " --branch agent/w-1");
  CHECK(again.code == 1);
  CHECK(again.output.find("not empty") != std::string::npos);
  CHECK(shell(program() + " remove --workspace " + world.workspace()).code == 0);
  auto made = shell(program() + " clone --checkout " + world.checkout() + " --workspace " + world.workspace() +
                    " --branch agent/w-1");
  INFO(made.output);
  CHECK(made.code == 0);
}

namespace {

// Runs the words in namespaces of their own, where an ordinary user may mount, with a small file system at `small`.
Ran withSmallDisk(const std::string& small, const std::string& script) {
  return shell("unshare -Urm sh -c " + shellQuote("mount -t tmpfs -o size=2m tmpfs " + small + " && " + script));
}

}  // namespace

TEST_CASE("a full disk: the clone is refused, says so, and leaves nothing half-made") {
  World world;
  world.makeCheckout();
  shell("head -c 5000000 /dev/urandom > " + world.checkout() + "/big");
  world.commit(world.checkout(), "a", "a\n");
  auto clone =
      program() + " clone --checkout " + world.checkout() + " --workspace " + world.workspace() + " --branch agent/w-1";
  auto full = withSmallDisk(world.at("work"), clone + "; echo code $?; echo left: $(ls -A " + world.at("work") + ")");
  INFO(full.output);
  CHECK(full.output.find("workspace_failed") != std::string::npos);
  CHECK(full.output.find("No space left") != std::string::npos);
  CHECK(full.output.find("free some space") != std::string::npos);
  CHECK(full.output.find("code 1\n") != std::string::npos);
  CHECK(full.output.ends_with("left:"));
  // A limit on the size of files is such an end, too.
  auto limited = shell("ulimit -f 2000; " + clone);
  INFO(limited.output);
  CHECK(limited.code == 1);
  CHECK(limited.output.find("workspace_failed") != std::string::npos);
  CHECK(shell("ls -A " + world.at("work")).output == "");
  CHECK(shell(clone).code == 0);
}

TEST_CASE("a full disk: the save is refused, and the checkout is as it was") {
  World world;
  world.makeCheckout();
  Daemon daemon(world);
  auto base = daemon.clone();
  shell("head -c 5000000 /dev/urandom > " + world.workspace() + "/big");
  world.commit(world.workspace(), "a", "a\n");
  auto tip = world.tip(world.workspace(), "HEAD");
  auto pack = world.at("pack");
  REQUIRE(shell(program() + " pack --workspace " + world.workspace() + " --branch agent/w-1 --base " + base +
                " 2>/dev/null > " + pack)
              .code == 0);
  auto small = world.at("small");
  makeDirectories(small, 0755);
  auto full = withSmallDisk(
      small, "cp -r " + world.checkout() + " " + small + " && " + program() + " receive --checkout " + small +
                 "/checkout --branch agent/w-1 --tip " + tip + " < " + pack + "; echo code $?; git -C " + small +
                 "/checkout fsck --full --strict && echo sound; git -C " + small +
                 "/checkout for-each-ref; echo left: $(ls -d " + small + "/checkout/.git/objects/tmp_* 2>&1)");
  INFO(full.output);
  CHECK(full.output.find("save_failed") != std::string::npos);
  CHECK(full.output.find("No space left") != std::string::npos);
  CHECK(full.output.find("code 1\n") != std::string::npos);
  CHECK(full.output.find("sound\n") != std::string::npos);
  CHECK(full.output.find("agent/w-1\n", full.output.find("sound\n")) == std::string::npos);
  CHECK(full.output.find("left: ls: cannot access") != std::string::npos);
}
