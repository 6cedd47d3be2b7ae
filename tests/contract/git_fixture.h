// A directory with git repositories for one test, and the git provider's server over an in-process pipe.
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "proto/convert.h"
#include "proto/rpc.h"
#include "providers/git/save.h"
#include "providers/git/checkout.h"
#include "providers/git/server.h"
#include "tests/catch.h"

namespace oc::git::tests {

struct Ran {
  int code;
  std::string output;  // of both streams, without the newlines at its end
};

inline Ran shell(const std::string& command) {
  FILE* pipe = popen(("( " + command + "\n) 2>&1").c_str(), "re");
  REQUIRE(pipe != nullptr);
  Ran ran{};
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof(buffer), pipe)) ran.output.append(buffer, n);
  int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (!ran.output.empty() && ran.output.back() == '\n') ran.output.pop_back();
  return ran;
}

inline bool exists(const std::string& path) {
  struct stat stats;
  return lstat(path.c_str(), &stats) == 0;
}

inline struct stat statOf(const std::string& path) {
  struct stat stats;
  REQUIRE(lstat(path.c_str(), &stats) == 0);
  return stats;
}

inline std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void put(const std::string& path, const std::string& text) {
  makeDirectories(path.substr(0, path.rfind('/')), 0755);
  std::ofstream(path) << text;
}

// Everything lies in one directory of its own, which goes with it.
class World {
 public:
  World() {
    char pattern[] = "/tmp/oc-git-test-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    root = pattern;
    makeDirectories(root + "/work", 0755);
    makeDirectories(root + "/home", 0755);
  }
  ~World() noexcept(false) {
    shell("chmod -R u+rwX " + root);
    removeTree(root);
  }

  std::string at(const std::string& name) const { return root + "/" + name; }
  std::string checkout() const { return at("checkout"); }
  std::string workspace() const { return at("work/workspace"); }

  // An operator's own git.
  std::string environment() const {
    return "env -i PATH=/usr/bin:/bin HOME=" + at("home") +
           " GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=Op GIT_AUTHOR_EMAIL=op@example.org GIT_COMMITTER_NAME=Op"
           " GIT_COMMITTER_EMAIL=op@example.org ";
  }
  Ran tryGit(const std::string& directory, const std::string& words) const {
    return shell(environment() + "git -C " + directory + " " + words);
  }
  std::string git(const std::string& directory, const std::string& words) const {
    auto ran = tryGit(directory, words);
    INFO("git " << words << "\n" << ran.output);
    REQUIRE(ran.code == 0);
    return ran.output;
  }

  void commit(const std::string& directory, const std::string& file, const std::string& text) const {
    put(directory + "/" + file, text);
    git(directory, "add -A -f");
    git(directory, "commit -q -m " + shellQuote("change " + file));
  }

  // A checkout on main with one commit.
  std::string makeCheckout(const std::string& options = "") const {
    makeDirectories(checkout(), 0755);
    git(checkout(), "init -q -b main " + options);
    commit(checkout(), "README", "one\n");
    return git(checkout(), "rev-parse HEAD");
  }

  // And a bare repository as its origin, which has main.
  void addOrigin() const {
    shell(environment() + "git init -q --bare -b main " + at("origin.git"));
    git(checkout(), "remote add origin " + at("origin.git"));
    git(checkout(), "push -q origin main");
    git(checkout(), "fetch -q origin");
  }

  std::string tip(const std::string& directory, const std::string& ref) const {
    auto ran = tryGit(directory, "rev-parse --verify -q " + ref);
    return ran.code == 0 ? ran.output : "";
  }

  // Whole, and without anything of ours left lying about.
  void requireSound(const std::string& directory) const {
    auto ran = tryGit(directory, "fsck --full --strict");
    INFO(ran.output);
    CHECK(ran.code == 0);
    CHECK(shell("ls -d " + directory + "/.git/objects/tmp_objdir* 2>/dev/null").output == "");
    CHECK(shell("find " + directory + "/.git -name '*.lock'").output == "");
  }

  std::string root;
};

// The server class for one job, without the lockdown: what another end of a pipe sees of it.
class Served {
 public:
  explicit Served(kj::AsyncIoContext& io, const std::vector<std::string>& words, kj::AutoCloseFd input = nullptr,
                  kj::AutoCloseFd output = nullptr)
      : io(io), context{io, {}, kj::NEVER_DONE} {
    auto pipe = io.provider->newTwoWayPipe();
    server = kj::heap<Connection>(kj::mv(pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER,
                                  kj::heap<GitServer>(context, parseJob(words), kj::mv(input), kj::mv(output)),
                                  RpcLimits(), "client");
    client =
        kj::heap<Connection>(kj::mv(pipe.ends[1]), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits(), "git");
  }

  proto::Git::Client git() { return client->bootstrapOfPeer().castAs<proto::Git>(); }

  template <typename Request>
  Refusal refusal(Request request) {
    return read(request.send().wait(io.waitScope).getRefusal());
  }

 private:
  kj::AsyncIoContext& io;
  kit::Context context;
  kj::Own<Connection> server, client;
};

struct Made {
  Refusal refusal;
  std::string base, branch, from;
};

struct Saved {
  Refusal refusal;
  std::string tip, savedAs;
  uint32_t commits = 0;
};

// The daemon's part, in short.
class Daemon {
 public:
  explicit Daemon(const World& world) : world(world) {}

  Refusal inspect(const std::string& path) {
    Served served(io, {"inspect", "--checkout", path});
    return served.refusal(served.git().inspectRequest());
  }

  uint32_t missing(const std::string& branch, const std::string& tip) {
    Served served(io, {"inspect", "--checkout", world.checkout()});
    auto request = served.git().missingRequest();
    request.setBranch(toText(branch));
    request.setTip(toText(tip));
    auto answer = request.send().wait(io.waitScope);
    REQUIRE(read(answer.getRefusal()).reason == "");
    return answer.getCommits();
  }

  Made make(const std::string& role, const std::string& branch, const std::string& start = "", bool again = false) {
    Served served(io, {role, "--checkout", world.checkout(), "--workspace", world.workspace()});
    if (role == "clone") return ask(served.git().cloneRequest(), branch, start);
    auto request = served.git().worktreeRequest();
    request.setAgain(again);
    return ask(kj::mv(request), branch, start);
  }

  // Must work; what it starts at.
  std::string clone(const std::string& branch = "agent/w-1") {
    auto made = make("clone", branch);
    INFO(made.refusal.what);
    REQUIRE(made.refusal.reason == "");
    return made.base;
  }

  Refusal remove(bool checkout = false) {
    std::vector<std::string> words = {"remove", "--workspace", world.workspace()};
    if (checkout) words.insert(words.end(), {"--checkout", world.checkout()});
    Served served(io, words);
    return served.refusal(served.git().removeRequest());
  }

  // Both sides with a pipe between them.
  Saved save(const std::string& branch, const std::string& base, const std::string& old, const std::string& otherwise,
             uint64_t maxSize = 1ull << 30, bool interrupted = false) {
    auto pipe = makePipe();
    Served packer(io, {"pack", "--workspace", world.workspace()}, nullptr, kj::mv(pipe.second));
    Served receiver(io, {"receive", "--checkout", world.checkout(), "--max-size", std::to_string(maxSize)},
                    kj::mv(pipe.first));
    Saved saved;
    auto tip = packer.git().tipRequest();
    tip.setBranch(toText(branch));
    tip.setBase(toText(base));
    auto found = tip.send().wait(io.waitScope);
    saved.refusal = read(found.getRefusal());
    if (!saved.refusal.reason.empty()) return saved;
    saved.tip = toString(found.getTip());
    saved.commits = found.getCommits();

    auto receive = receiver.git().receiveRequest();
    receive.setBranch(toText(branch));
    receive.setOld(toText(old));
    receive.setTip(toText(saved.tip));
    receive.setOtherwise(toText(otherwise));
    receive.setInterrupted(interrupted);
    auto received = receive.send();
    auto pack = packer.git().packRequest();
    pack.setTip(toText(saved.tip));
    pack.setBase(toText(base));
    auto packed = read(pack.send().wait(io.waitScope).getRefusal());
    auto answer = received.wait(io.waitScope);
    saved.refusal = packed.reason.empty() ? read(answer.getRefusal()) : packed;
    saved.savedAs = toString(answer.getSavedAs());
    return saved;
  }

  // What is not committed, against `tip`.
  Uncommitted uncommitted(const std::string& tip) {
    Served packer(io, {"pack", "--workspace", world.workspace()}, nullptr, openFile("/dev/null", O_WRONLY));
    auto request = packer.git().uncommittedRequest();
    request.setTip(toText(tip));
    auto answer = request.send().wait(io.waitScope);
    auto refusal = read(answer.getRefusal());
    INFO(refusal.what);
    CHECK(refusal.reason == "");
    Uncommitted found;
    found.count = answer.getCount();
    for (auto name : answer.getNames()) found.names.push_back(toString(name));
    return found;
  }

  // One commit in the workspace, saved for the first time.
  Saved saveFirst(const std::string& base, const std::string& branch = "agent/w-1") {
    return save(branch, base, std::string(base.size(), '0'), branch + "-r-1");
  }

  Saved receive(const std::string& pack, const std::string& tip, const std::string& old = std::string(40, '0')) {
    Served receiver(io, {"receive", "--checkout", world.checkout()}, openFile(pack, O_RDONLY));
    auto request = receiver.git().receiveRequest();
    request.setBranch("agent/w-1");
    request.setOld(toText(old));
    request.setTip(toText(tip));
    request.setOtherwise("agent/w-1-r-1");
    auto answer = request.send().wait(io.waitScope);
    return {read(answer.getRefusal()), tip, toString(answer.getSavedAs())};
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();

 private:
  template <typename Request>
  Made ask(Request request, const std::string& branch, const std::string& start) {
    request.setBranch(toText(branch));
    request.setStartPoint(toText(start));
    auto answer = request.send().wait(io.waitScope);
    return {read(answer.getRefusal()), toString(answer.getWorkspace().getBase()),
            toString(answer.getWorkspace().getBranch()), toString(answer.getWorkspace().getFrom())};
  }

  const World& world;
};

inline const std::string none(40, '0');

}  // namespace oc::git::tests
