// What is mounted twice has two names, and a sandbox denies names. With bind mounts in a mount namespace of the test's
// own.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/sandbox/container.h"
#include "daemon/sandbox/startup_writes.h"
#include "srt_world.h"

using namespace oc;
using oc::test::get;
using oc::test::put;
using oc::test::SrtWorld;

namespace {

// In a world of its own, whose mounts nobody else sees. A test's own assertions count outside only, so `body` tells.
std::string withMounts(const std::function<void(SrtWorld&)>& arrange,
                       const std::vector<std::pair<std::string, std::string>>& binds,
                       const std::function<std::string(SrtWorld&)>& body) {
  test::becomeOrdinaryUser();
  auto answer = makePipe();
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string text;
    try {
      auto uid = geteuid(), gid = getegid();
      KJ_SYSCALL(unshare(CLONE_NEWUSER | CLONE_NEWNS));
      for (auto& [path, map] : {std::pair("/proc/self/setgroups", std::string("deny")),
                                {"/proc/self/uid_map", fmt::format("{0} {0} 1", uid)},
                                {"/proc/self/gid_map", fmt::format("{0} {0} 1", gid)}}) {
        writeAll(openFile(path, O_WRONLY).get(), map);
      }
      KJ_SYSCALL(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
      SrtWorld world;
      arrange(world);
      std::vector<std::string> mounted;
      KJ_DEFER(for (auto& at : mounted) umount2(at.c_str(), MNT_DETACH));
      for (auto& [from, to] : binds) {
        auto source = world.root + "/" + from, target = world.root + "/" + to;
        struct stat stats;
        KJ_SYSCALL(stat(source.c_str(), &stats), source);
        if (S_ISDIR(stats.st_mode)) {
          makeDirectories(target);
        } else {
          put(target, "");
        }
        KJ_SYSCALL(mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr), source, target);
        mounted.insert(mounted.begin(), target);
      }
      text = body(world);
      world.instance = nullptr;
    } catch (const kj::Exception& exception) {
      text = kj::str("failed: ", exception).cStr();
    } catch (...) {
      text = "failed";
    }
    writeAll(answer.second.get(), text);
    _exit(0);
  }
  answer.second = nullptr;
  auto text = readAll(answer.first.get(), 1 << 20);
  int status;
  KJ_SYSCALL(waitpid(child, &status, 0));
  return text;
}

void fillHome(SrtWorld& world) {
  put(world.home(".ssh/id_ed25519"), "key\n");
  put(world.home(".netrc"), "password\n");
  put(world.home(".claude/settings.json"), "claude\n");
  put(world.home("private/diary"), "diary\n");
  put(world.home("private/open/note"), "note\n");
  put(world.home("notes"), "notes\n");
  put(world.places.runFiles("r-2") + "/other", "another run's\n");
  makeDirectories(world.home("granted"));
}

const std::vector<std::pair<std::string, std::string>> everywhere = {
    {"home", "mnt/home"},
    {"home/.local/state/open-conduit", "home/granted/state"},
    {"home/.local/state", "home/granted/xdg"},
    {"home/.config/open-conduit/config.json", "home/granted/config"},
    {"home/.local/share/open-conduit/runs/r-2/files", "home/granted/other run"},
    {"home/.ssh", "home/granted/keys"},
    {"home/.netrc", "home/granted/file"},
    {"home/.claude", "home/granted/claude"},
    {"home/private", "mnt/private"},
    {"home/private/open", "mnt/open"},
};

constexpr auto tryAll = R"sh(
cd "$HOME/granted"
for path in ../../mnt/home/.local/state/open-conduit/operator-token state/operator-token xdg/open-conduit/operator-token \
    config ../../mnt/home/.config/open-conduit/config.json "other run/other" \
    ../../mnt/home/.local/share/open-conduit/runs/r-2/files/other keys/id_ed25519 ../../mnt/home/.ssh/id_ed25519 \
    file ../../mnt/home/.netrc claude/settings.json ../../mnt/home/.claude/settings.json \
    ../../mnt/private/diary ../../mnt/home/private/diary; do
  cat "$path" 2>/dev/null; echo evil 2>/dev/null > "$path"; rm -f "$path" 2>/dev/null
done
cat ../../mnt/home/notes; echo end
)sh";

}  // namespace

TEST_CASE("A8 C2 C11 what is denied is denied under each name that a mount gives it") {
  auto [plain, sealed] = GENERATE(table<bool, bool>({{false, true}, {true, true}, {false, false}}));
  INFO(plain << sealed);
  auto output = withMounts(fillHome, everywhere, [plain = plain, sealed = sealed](SrtWorld& world) {
    world.policy.write = {"{workspace}", "~/granted"};
    world.policy.readDeny = {"~/private"};
    world.policy.readAllow = {"~/private/open"};
    world.policy.allUnixSockets = plain;
    // The control: as if a name were all that there is.
    if (!sealed) {
      world.adjust = [&world](sandbox::SrtSettings& settings) {
        for (auto list : {"denyRead", "denyWrite"}) {
          auto& paths = settings.settings["filesystem"][list];
          for (size_t i = paths.size(); i-- > 0;) {
            auto path = paths[i].is_string() ? paths[i].get<std::string>() : paths[i]["path"].get<std::string>();
            if (path.starts_with(world.root + "/mnt") || path.starts_with(world.home("granted"))) paths.erase(i);
          }
        }
        std::vector<std::string> hidden;
        for (auto& path : settings.hidden) {
          if (!path.starts_with(world.root + "/mnt") && !path.starts_with(world.home("granted")))
            hidden.push_back(path);
        }
        settings.hidden = hidden;
      };
    }
    auto output = world.run(tryAll).output;
    output += get(world.places.operatorToken()) + get(world.places.config()) + get(world.home(".ssh/id_ed25519")) +
              get(world.home(".netrc")) + get(world.home(".claude/settings.json")) + get(world.home("private/diary"));
    return output;
  });
  if (sealed) {
    CHECK(output == "notes\nend\nthe token\nthe config\nkey\npassword\nclaude\ndiary\n");
  } else {
    for (auto secret :
         {"the token\n", "the config\n", "key\n", "password\n", "claude\n", "diary\n", "another run's\n"}) {
      CHECK(output.substr(0, output.find("end\n")).find(secret) != std::string::npos);
    }
  }
}

TEST_CASE("C4 what an exception lifts is readable under its own name, and under no other one that is denied") {
  auto output = withMounts(fillHome, everywhere, [](SrtWorld& world) {
    world.policy.readDeny = {"~/private"};
    world.policy.readAllow = {"~/private/open", "~/.ssh"};
    return world.run("cat ~/private/open/note ~/.ssh/id_ed25519 ~/private/diary; echo end").output;
  });
  CHECK(output == "note\nkey\nend\n");
}

TEST_CASE("A8 F1 a grant that reaches into Open Conduit's own by another mount's name is refused") {
  for (auto entry : {"mnt/home/.local/state/open-conduit", "mnt/home/.config/open-conduit/config.json",
                     "home/granted/state/operator-token", "home/granted/other run", "mnt/home/.claude"}) {
    INFO(entry);
    auto told = withMounts(fillHome, everywhere, [entry](SrtWorld& world) {
      std::string told;
      for (auto* list : {&world.policy.write, &world.policy.readAllow}) {
        world.policy = {};
        *list = {world.root + "/" + entry};
        auto made = sandbox::makeSrtSettings(world.policy, world.parts, world.places, world.place, world.environ);
        told += made.ok() ? "made\n" : made.refusal().reason + "\n";
      }
      return told;
    });
    CHECK(told == "sandbox_denied\nsandbox_denied\n");
  }
}

TEST_CASE("A8 B4 a container is refused what another mount's name leads to: Open Conduit's own, the engine, proc") {
  auto binds = everywhere;
  binds.insert(binds.end(), {{"engine", "mnt/engine"}, {"../../proc", "mnt/machine"}});
  auto told = withMounts(
      [](SrtWorld& world) {
        fillHome(world);
        put(world.root + "/engine/docker.sock", "");
        put(world.root + "/programs/open-conduit-toolbelt", "");
        makeDirectories(world.places.workHome("w-1"));
      },
      binds,
      [](SrtWorld& world) {
        std::string told;
        sandbox::ContainerPlace place{
            world.place, world.places.workHome("w-1"), "", world.root + "/programs", world.root + "/engine/docker.sock",
            {}};
        for (auto entry : {"mnt/home/.local/state/open-conduit", "mnt/home/.local", "home/granted",
                           "home/granted/state/operator-token", "home/granted/other run", "mnt/engine", "mnt/machine",
                           "mnt/machine/self/root", "mnt/open"}) {
          config::ContainerPolicy policy;
          policy.read = {world.root + "/" + entry};
          auto made = sandbox::makeContainerSettings(policy, world.places, place, world.environ);
          told += fmt::format("{}: {}\n", entry, made.ok() ? "made" : made.refusal().reason);
        }
        return told;
      });
  CHECK(told ==
        "mnt/home/.local/state/open-conduit: sandbox_denied\nmnt/home/.local: sandbox_denied\n"
        "home/granted: sandbox_denied\nhome/granted/state/operator-token: sandbox_denied\n"
        "home/granted/other run: sandbox_denied\nmnt/engine: sandbox_denied\nmnt/machine: sandbox_denied\n"
        "mnt/machine/self/root: sandbox_denied\nmnt/open: made\n");
}

TEST_CASE("C1 a write of what the operator's shell and tools obey is refused by whatever mount it is reached") {
  auto told = withMounts(
      [](SrtWorld& world) {
        fillHome(world);
        put(world.home(".config/git/config"), "");
        put(world.home(".bashrc"), "");
      },
      {{"home", "mnt/home"}, {"home/.config", "home/granted/settings"}, {"home/private", "home/plain/private"}},
      [](SrtWorld& world) {
        std::string told;
        for (auto& entry :
             {world.root + "/mnt", world.root + "/mnt/home", std::string("~/granted"),
              std::string("~/granted/settings/git"), world.root + "/mnt/home/private", std::string("~/plain")}) {
          world.policy.write = {entry};
          auto made = sandbox::makeSrtSettings(world.policy, world.parts, world.places, world.place, world.environ);
          if (!made) return "not made: " + made.refusal().what;
          auto refusal = sandbox::refuseStartupWrites(made.value().rules.allowWrite, world.places);
          told += refusal ? refusal->reason + "\n" : "fine\n";
        }
        return told;
      });
  CHECK(told == "sandbox_denied\nsandbox_denied\nsandbox_denied\nsandbox_denied\nfine\nfine\n");
}

TEST_CASE("C1 a mount beneath a granted folder is granted with it, and one elsewhere is not") {
  auto output = withMounts(
      fillHome, {{"home/private", "home/granted/private"}, {"home/private/open", "mnt/open"}}, [](SrtWorld& world) {
        world.policy.write = {"{workspace}", "~/granted"};
        auto output = world
                          .run(
                              "cat ~/granted/private/diary; echo written > ~/granted/private/diary; "
                              "echo evil 2>/dev/null > " +
                              world.root + "/mnt/open/note; echo end")
                          .output;
        return output + get(world.home("private/diary")) + get(world.home("private/open/note"));
      });
  CHECK(output == "diary\nend\nwritten\nnote\n");
}
