#include "tests/catch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "cli/terminal.h"
#include "daemon/work/attach_plan.h"

namespace oc {
namespace {

using cli::DetachKey;

TEST_CASE("B17 the detach key is seen in one piece or in two, and all else is passed on", "[attach]") {
  DetachKey whole;
  CHECK(whole.pass("ab\x10\x11"
                   "cd") == "ab");
  CHECK(whole.seen());

  DetachKey halves;
  CHECK(halves.pass("ab\x10") == "ab");
  CHECK_FALSE(halves.seen());
  CHECK(halves.pass("\x11") == "");
  CHECK(halves.seen());

  DetachKey other;
  CHECK(other.pass("\x10") == "");
  CHECK(other.pass("x") == "\x10x");
  CHECK(other.pass("\x10\x10") == "\x10");
  CHECK(other.pass("\x11") == "");
  CHECK(other.seen());

  DetachKey bytes;
  std::string all;
  for (int c = 0; c < 256; ++c) {
    if (c != 0x10) all += static_cast<char>(c);
  }
  CHECK(bytes.pass(all) == all);
  CHECK_FALSE(bytes.seen());
}

// A Work whose last run was r-1, on a disk of its own.
struct AttachWorld {
  std::string root;
  Places places;
  config::Binding binding;
  state::WorkRow work;
  oc::work::PinnedContainer pinned;
  oc::work::RunEngine engine;

  AttachWorld() {
    char name[] = "/tmp/oc-attach-XXXXXX";
    root = mkdtemp(name);
    places = {root, root + "/config", root + "/state", root + "/data", root + "/run"};
    binding.scope = "demo";
    binding.name = "boxed";
    binding.executor = "shell";
    binding.env = {{"COLOUR", "green"}, {"NEW", "since"}};
    work.id = "w-1";
    work.session = "b4f6";
    for (auto& path : {places.workspace("w-1"), places.workHome("w-1"), places.runFiles("a-1"),
                       places.runSecrets("a-1"), root + "/granted", root + "/bin", root + "/elsewhere"}) {
      makeDirectories(path);
    }
    writeFileAtomically(root + "/bin/open-conduit-toolbelt", "");
    auto mount = [](const std::string& source, const std::string& target, bool writable) {
      return Json{{"source", source}, {"target", target}, {"writable", writable}, {"device", 1}, {"inode", 1}};
    };
    pinned = {"r-1",
              "5ha",
              {{"kind", "docker"},
               {"executor", "shell"},
               {"directory", places.workspace("w-1")},
               {"environment", {"COLOUR", "HOME"}},
               {"secrets", {"TOKEN", "OPEN_CONDUIT_TOOLBELT_TOKEN"}},
               {"sandbox",
                {{"mounts",
                  {mount(places.workspace("w-1"), places.workspace("w-1"), true),
                   mount(places.workHome("w-1"), places.workHome("w-1"), true),
                   mount(root + "/granted", root + "/granted", false),
                   mount(places.runFiles("r-1"), places.runFiles("r-1"), true)}},
                 {"network", {{"allow", {"example.org:443"}}, {"private", Json::array()}}},
                 {"limits", {{"memory_bytes", 1u << 30}, {"nano_cpus", 0}, {"pids", 77}}}}}}};
    engine.image.id = "sha256:image";
    engine.gatewayImage.id = "sha256:gateway";
  }
  ~AttachWorld() { removeTree(root); }

  OrRefusal<oc::work::AttachPlan> make() {
    return oc::work::makeAttachPlan(
        {pinned, binding, work, "a-1", places, root + "/bin", "oc-owner", engine, {{80, 24}, "xterm", ""}, {"TOKEN"}},
        {});
  }
};

std::string valueOf(const work::ContainerSpec& spec, const std::string& name) {
  for (auto& [variable, value] : spec.environment) {
    if (variable == name) return value;
  }
  return "(none)";
}

TEST_CASE("B17 what a Work ran in decides what its attachment gets, not its binding of today", "[attach]") {
  AttachWorld world;
  auto made = world.make();
  REQUIRE(made.ok());
  auto& spec = made.value().container;
  CHECK(spec.role == "attach");
  CHECK(spec.run == "a-1");
  CHECK(spec.planSha256 == "5ha");
  CHECK(spec.tty);
  CHECK(spec.image == "sha256:image");
  CHECK(spec.settings.pids == 77);
  CHECK(spec.settings.memoryBytes == 1u << 30);
  REQUIRE(spec.settings.allow.size() == 1);
  CHECK(spec.settings.allow[0].toString() == "example.org:443");
  CHECK(valueOf(spec, "COLOUR") == "green");
  CHECK(valueOf(spec, "NEW") == "(none)");
  CHECK(valueOf(spec, "TERM") == "xterm");
  CHECK(valueOf(spec, "TOKEN") == "(none)");
  CHECK(valueOf(spec, "OPEN_CONDUIT_TOOLBELT") == "(none)");
  CHECK(world.pinned.secretVariables() == std::vector<std::string>{"TOKEN"});

  std::vector<std::string> targets;
  for (auto& mount : spec.settings.mounts) targets.push_back(mount.target);
  auto has = [&](const std::string& target) {
    return std::find(targets.begin(), targets.end(), target) != targets.end();
  };
  CHECK(has(world.root + "/granted"));
  CHECK(has(world.places.runFiles("a-1")));
  CHECK_FALSE(has(world.places.runFiles("r-1")));
  CHECK(spec.command.back() == "/bin/sh");
}

TEST_CASE("B17 Claude Code is resumed for a person, who is asked what it asks", "[attach]") {
  AttachWorld world;
  world.pinned.document["executor"] = "claude-code";
  auto made = world.make();
  REQUIRE(made.ok());
  auto& command = made.value().container.command;
  std::vector<std::string> last(command.end() - 4, command.end());
  CHECK(last == std::vector<std::string>{"claude", "--permission-mode", "bypassPermissions", "--resume=b4f6"});
}

TEST_CASE("B17 a granted folder that became a link to elsewhere is not mounted", "[attach]") {
  AttachWorld world;
  removeTree(world.root + "/granted");
  REQUIRE(symlink((world.root + "/elsewhere").c_str(), (world.root + "/granted").c_str()) == 0);
  auto made = world.make();
  REQUIRE_FALSE(made.ok());
  CHECK(made.refusal().reason == "sandbox_denied");
  CHECK(made.refusal().what.find("/granted") != std::string::npos);
}

TEST_CASE("B17 a folder that is gone, and a plan that says less, refuse", "[attach]") {
  AttachWorld world;
  removeTree(world.root + "/granted");
  CHECK(world.make().refusal().reason == "sandbox_denied");
  AttachWorld other;
  other.pinned.document["sandbox"].erase("limits");
  CHECK(other.make().refusal().reason == "no_plan");
}

}  // namespace
}  // namespace oc
