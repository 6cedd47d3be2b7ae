#include "daemon/sandbox/container.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fd.h"
#include "daemon/config/formats.h"
#include "tests/catch.h"

using namespace oc;
using namespace oc::sandbox;

namespace {

// A home with a run in it, and the folder of Open Conduit's programs.
struct World {
  World() {
    char path[] = "/tmp/oc-container-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root = path;
    places = {root + "/home", root + "/home/.config/open-conduit", root + "/home/.local/state/open-conduit",
              root + "/home/.local/share/open-conduit", root + "/run/open-conduit"};
    place.run = {"w-1", "r-1", places.workspace("w-1"), places.runFiles("r-1"), places.runFiles("r-1") + "/tmp", "",
                 {},    {}};
    place.home = places.workHome("w-1");
    place.programs = root + "/programs";
    place.engineSocket = root + "/engine/docker.sock";
    for (auto& directory : {places.configDir, places.stateDir, places.runtimeDir, place.run.workspace + "/.git/hooks",
                            place.run.workspace + "/.git/info", place.run.tmp, places.runPrivate("r-1"), place.home,
                            home("code"), root + "/engine", root + "/tools/bin"}) {
      makeDirectories(directory);
    }
    for (auto& file : {place.run.workspace + "/.git/config", place.programs + "/open-conduit-toolbelt",
                       home(".gitconfig"), place.engineSocket, root + "/tools/bin/git"}) {
      makeDirectories(file.substr(0, file.rfind('/')));
      writeFileAtomically(file, "x");
    }
    place.outside = {root + "/tools/bin/git"};
    policy.write = {"{workspace}"};
  }
  ~World() { removeTree(root); }

  std::string home(const std::string& name) const { return places.home + "/" + name; }

  ContainerSettings make() {
    auto result = makeContainerSettings(policy, places, place, environ);
    if (!result) FAIL(result.refusal().reason + ": " + result.refusal().what);
    return std::move(result).value();
  }
  Refusal refused() {
    auto result = makeContainerSettings(policy, places, place, environ);
    REQUIRE_FALSE(result.ok());
    CHECK(result.refusal().reason == "sandbox_denied");
    CHECK_FALSE(result.refusal().fix.empty());
    return result.refusal();
  }

  std::string root;
  Places places;
  ContainerPlace place;
  std::map<std::string, std::string> environ;
  config::ContainerPolicy policy;
};

const ContainerMount* at(const ContainerSettings& settings, const std::string& target) {
  for (auto& mount : settings.mounts) {
    if (mount.target == target) return &mount;
  }
  return nullptr;
}

bool says(const Refusal& refusal, const std::string& text) { return refusal.what.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("B7 a container has the workspace, the run's folder, the Work's home and what is listed, at the same path",
          "[container]") {
  World world;
  world.policy.read = {"~/code"};
  auto made = world.make();
  REQUIRE(at(made, world.place.run.workspace) != nullptr);
  CHECK(at(made, world.place.run.workspace)->writable);
  CHECK(at(made, world.place.run.runFiles)->writable);
  CHECK(at(made, world.place.home)->writable);
  REQUIRE(at(made, world.home("code")) != nullptr);
  CHECK_FALSE(at(made, world.home("code"))->writable);
  CHECK_FALSE(at(made, containerProgram)->writable);
  for (auto& mount : made.mounts) {
    INFO(mount.target);
    struct stat stats;
    REQUIRE(stat(mount.source.c_str(), &stats) == 0);
    CHECK((mount.device == stats.st_dev && mount.inode == stats.st_ino));
    bool ours = mount.target.starts_with(world.place.run.workspace) || mount.target == world.place.run.runFiles ||
                mount.target == world.place.home || mount.target == containerProgram;
    CHECK((ours || mount.target == world.home("code")));
  }
}

TEST_CASE("C7 a container's .git is a mount of its own, with config, hooks and info read-only in it", "[container]") {
  World world;
  auto made = world.make();
  auto git = world.place.run.workspace + "/.git";
  REQUIRE(at(made, git) != nullptr);
  CHECK(at(made, git)->writable);
  for (auto name : {"config", "hooks", "info"}) {
    INFO(name);
    REQUIRE(at(made, git + "/" + name) != nullptr);
    CHECK_FALSE(at(made, git + "/" + name)->writable);
  }
}

TEST_CASE("C7 git's own files are read-only however they are granted", "[container]") {
  World world;
  auto git = world.place.run.workspace + "/.git";
  writeFileAtomically(git + "/hooks/pre-commit", "#!/bin/sh\n");
  REQUIRE(symlink(".git/hooks", (world.place.run.workspace + "/link").c_str()) == 0);
  std::vector<std::string> all = {"{workspace}/.git", "{workspace}/.git/config", "{workspace}/.git/hooks",
                                  "{workspace}/.git/hooks/pre-commit", "{workspace}/link"};
  world.policy.write = all;
  if (GENERATE(true, false)) world.policy.write.insert(world.policy.write.begin(), "{workspace}");
  auto made = world.make();
  CHECK(at(made, git)->writable);
  for (auto path : {git + "/config", git + "/hooks", git + "/info", git + "/hooks/pre-commit",
                    world.place.run.workspace + "/link"}) {
    INFO(path);
    REQUIRE(at(made, path) != nullptr);
    CHECK_FALSE(at(made, path)->writable);
  }
}

TEST_CASE("B7 a workspace that the policy does not grant is read-only, and the run says so", "[container]") {
  World world;
  world.policy.write = {};
  auto made = world.make();
  CHECK_FALSE(at(made, world.place.run.workspace)->writable);
  CHECK(at(made, world.place.run.workspace + "/.git") == nullptr);
  REQUIRE(made.notes.size() == 1);
  CHECK(made.notes[0].find("read-only") != std::string::npos);
}

TEST_CASE("B7 read: [\"~/.gitconfig\"] is git's global config inside", "[container]") {
  World world;
  CHECK(world.make().environment.count("GIT_CONFIG_GLOBAL") == 0);
  world.policy.read = {"~/.gitconfig"};
  CHECK(world.make().environment.at("GIT_CONFIG_GLOBAL") == world.home(".gitconfig"));
}

TEST_CASE("B11 HOME and CLAUDE_CONFIG_DIR are the Work's own", "[container]") {
  World world;
  auto made = world.make();
  CHECK(made.environment.at("HOME") == world.places.workHome("w-1"));
  CHECK(made.environment.at("CLAUDE_CONFIG_DIR") == world.places.workHome("w-1"));
}

TEST_CASE("A8 no container gets what lies in or above Open Conduit's own", "[container]") {
  World world;
  auto grant = GENERATE(as<std::string>{}, "~", "~/.local", "~/.local/state", "~/.local/state/open-conduit",
                        "~/.config", "~/.config/open-conduit", "~/.local/share/open-conduit/runs");
  bool write = GENERATE(true, false);
  INFO(grant << (write ? " in write" : " in read"));
  (write ? world.policy.write : world.policy.read).push_back(grant);
  CHECK(says(world.refused(), "Open Conduit's own"));
}

TEST_CASE("A8 nor by a link", "[container]") {
  World world;
  REQUIRE(symlink(world.places.stateDir.c_str(), world.home("innocent").c_str()) == 0);
  world.policy.read = {"~/innocent"};
  CHECK(says(world.refused(), "Open Conduit's own"));
}

TEST_CASE("A8 nor another run's files, or another Work's workspace", "[container]") {
  World world;
  makeDirectories(world.places.runFiles("r-2"));
  makeDirectories(world.places.workspace("w-2"));
  for (auto& path : {world.places.runFiles("r-2"), world.places.workspace("w-2")}) {
    INFO(path);
    world.policy.read = {path};
    CHECK(says(world.refused(), "Open Conduit's own"));
  }
}

TEST_CASE("B4 the machine's own places and what holds the engine's socket are refused, naming the field",
          "[container]") {
  World world;
  struct Row {
    std::string path, words;
  };
  for (auto& row :
       {Row{"/", "whole file system"}, Row{"/proc", "machine's own"}, Row{"/proc/self", "machine's own"},
        Row{"/sys/fs", "machine's own"}, Row{"/dev", "machine's own"}, Row{"/dev/null", "machine's own"},
        Row{world.root + "/engine", "Docker socket"}, Row{world.root + "/engine/docker.sock", "Docker socket"}}) {
    world.policy.read = {row.path};
    auto refusal = world.refused();
    INFO(row.path << ": " << refusal.what);
    CHECK(says(refusal, row.words));
    CHECK(says(refusal, "read[0]"));
  }
}

TEST_CASE("B4 nor by another name: a link, dots, doubled slashes", "[container]") {
  World world;
  REQUIRE(symlink("/proc", world.home("link").c_str()) == 0);
  REQUIRE(symlink("link", world.home("second").c_str()) == 0);
  REQUIRE(symlink(world.place.engineSocket.c_str(), world.home("engine").c_str()) == 0);
  for (auto path : {"//proc//self/", "/./proc/.", "~/link", "~/second", "~/second/self", "~/code/../link/self"}) {
    INFO(path);
    world.policy.read = {path};
    CHECK(says(world.refused(), "machine's own"));
  }
  world.policy.read = {"~/engine"};
  CHECK(says(world.refused(), "Docker socket"));
  for (auto path : {"/run", "//run/", "/var/run"}) {
    INFO(path);
    world.policy.read = {path};
    CHECK(says(world.refused(), "read[0]"));
  }
}

TEST_CASE("B4 a folder that holds a socket which leads out is refused; the socket itself may be granted",
          "[container]") {
  World world;
  auto boundAt = [&world](const std::string& name) {
    auto path = world.home(name);
    makeDirectories(path.substr(0, path.rfind('/')));
    kj::AutoCloseFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    struct sockaddr_un address {};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof(address.sun_path));
    memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(bind(fd.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(listen(fd.get(), 1) == 0);
    return fd;
  };
  // By its name, by what the environment says, and one of a server that does nothing for others.
  auto multiplexer = boundAt("sockets/tmux-1000/default"), agent = boundAt("keys/agent"),
       other = boundAt("other/server");
  world.environ["SSH_AUTH_SOCK"] = world.home("keys/agent");
  bool write = GENERATE(true, false);
  auto& list = write ? world.policy.write : world.policy.read;
  for (auto path : {"~/sockets", "~/sockets/tmux-1000", "~/keys"}) {
    INFO(path);
    list = {path};
    auto refusal = world.refused();
    CHECK(says(refusal, world.home(path + 2)));
    CHECK(says(refusal, "outside of its container"));
  }
  list = {"~/other", "~/keys/agent"};
  CHECK(at(world.make(), world.home("keys/agent")) != nullptr);
}

TEST_CASE("F1 what is no folder can be granted by its name, and a name that mounts' texts could break on is a name",
          "[container]") {
  World world;
  REQUIRE(mkfifo(world.home("pipe").c_str(), 0600) == 0);
  for (auto name : {"a:b", "a,b", "a\"b", "a\\b", "a'b", "a b", "a$HOME", "\xff\xfe", "{run}", "~"})
    makeDirectories(world.home(name));
  for (auto name :
       {"pipe", ".gitconfig", "a:b", "a,b", "a\"b", "a\\b", "a'b", "a b", "a$HOME", "\xff\xfe", "{run}", "~"}) {
    INFO(name);
    world.policy.read = {"~/" + std::string(name)};
    auto made = world.make();
    REQUIRE(at(made, world.home(name)) != nullptr);
    CHECK(at(made, world.home(name))->source == world.home(name));
  }
  for (auto name : {"a\nb", "a\x1b[2J", "a\x7f"}) {
    world.policy.read = {"~/" + std::string(name)};
    auto refusal = world.refused();
    CHECK(says(refusal, "read[0]"));
    CHECK(refusal.what.find_first_of("\n\x1b\x7f") == std::string::npos);
  }
}

TEST_CASE("F1 a path that is not there is refused before the run, naming it", "[container]") {
  World world;
  world.policy.write.push_back("~/absent");
  CHECK(says(world.refused(), "write[1]: \"~/absent\" does not exist"));
  world.policy.write = {"~/dangling"};
  REQUIRE(symlink("/nowhere/at/all", world.home("dangling").c_str()) == 0);
  CHECK(says(world.refused(), "leads nowhere"));
  REQUIRE(symlink("loop", world.home("loop").c_str()) == 0);
  world.policy.write = {"~/loop"};
  CHECK(says(world.refused(), "leads nowhere"));
  for (auto path : {std::string("~/.gitconfig/beneath"), "/" + std::string(200, 'a')}) {
    world.policy.write = {path};
    CHECK(says(world.refused(), "does not exist"));
  }
  for (auto path : {"/" + std::string(300, 'a'), "/" + std::string(5000, 'a')}) {
    world.policy.write = {path};
    CHECK(says(world.refused(), "File name too long"));
  }
}

TEST_CASE("F1 what its user cannot look at is not mounted by an engine that can", "[container]") {
  World world;
  makeDirectories(world.home("closed/inside"));
  REQUIRE(chmod(world.home("closed").c_str(), 0) == 0);
  KJ_DEFER(chmod(world.home("closed").c_str(), 0700));
  if (access(world.home("closed/inside").c_str(), F_OK) == 0) OC_SKIP("root can look at everything");
  world.policy.read = {"~/closed/inside"};
  CHECK(says(world.refused(), "cannot be looked at: Permission denied"));
}

TEST_CASE("F1 what runs outside of containers is not writable in one, and may be read", "[container]") {
  World world;
  world.policy.write.push_back(world.root + "/tools");
  CHECK(says(world.refused(), "runs outside"));
  world.policy.write = {"{workspace}", world.place.programs};
  CHECK(says(world.refused(), "runs outside"));
  for (auto& program : {world.root + "/tools/bin/git", world.place.programs + "/open-conduit-toolbelt"}) {
    world.policy.write = {program};
    CHECK(says(world.refused(), "write[0]"));
  }
  makeDirectories(world.place.programs + "/parts");
  world.policy.write = {"{workspace}", world.place.programs + "/parts"};
  CHECK(says(world.refused(), "lies in"));
  world.policy.write = {"{workspace}"};
  world.policy.read = {world.root + "/tools"};
  CHECK_FALSE(at(world.make(), world.root + "/tools")->writable);
}

TEST_CASE("C11 the operator's own claude is not writable in a container", "[container]") {
  World world;
  makeDirectories(world.home(".claude/hooks"));
  world.policy.write.push_back(GENERATE(as<std::string>{}, "~/.claude", "~/.claude/hooks"));
  CHECK(says(world.refused(), "your own claude's"));
}

TEST_CASE("F1 a link that an agent could have planted in its workspace does not widen the policy", "[container]") {
  World world;
  REQUIRE(symlink(world.home("code").c_str(), (world.place.run.workspace + "/out").c_str()) == 0);
  world.policy.write = {"{workspace}", "{workspace}/out"};
  CHECK(says(world.refused(), "through a link"));
}

TEST_CASE("B4 limits as they are written", "[container]") {
  World world;
  world.policy.memory = "8g";
  world.policy.cpus = 0.5;
  auto made = world.make();
  CHECK(made.memoryBytes == uint64_t(8) << 30);
  CHECK(made.nanoCpus == 500'000'000u);
  CHECK(made.pids == 4096);
  CHECK(config::memoryBytes("512m") == 512u << 20);
  CHECK(config::memoryBytes("1000") == 1000);
  CHECK(config::memoryBytes("7K") == 7168);
}

TEST_CASE("B13 secrets are in a folder of their own, and only where there are some", "[container]") {
  World world;
  CHECK(at(world.make(), containerSecrets) == nullptr);
  world.place.secrets = world.places.runSecrets("r-1");
  makeDirectories(world.place.secrets);
  REQUIRE(at(world.make(), containerSecrets) != nullptr);
}
