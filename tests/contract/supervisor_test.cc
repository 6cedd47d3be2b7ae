// Starting, verifying and watching providers, with the real programs.
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/procfs.h"
#include "daemon/supervisor/resident.h"
#include "git.capnp.h"
#include "tests/catch.h"

namespace oc {
namespace {

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  supervisor::Supervisor supervisor{io, getenv("OPEN_CONDUIT_PROGRAMS")};

  supervisor::LaunchSpec check() {
    supervisor::LaunchSpec spec;
    spec.provider = "git";
    spec.label = "check";
    spec.job = {"check"};
    return spec;
  }
  std::string whyNot(supervisor::LaunchSpec spec) {
    return supervisor.start(std::move(spec))
        .then([](kj::Own<supervisor::Instance>) { return std::string("it started"); },
              [](kj::Exception&& exception) { return describe(exception); })
        .wait(io.waitScope);
  }
};

// A folder with a program in it that claims to be the git provider.
struct Impostor {
  std::string directory;
  explicit Impostor(const std::string& script) {
    char path[] = "/tmp/oc-sup-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    directory = path;
    writeFileAtomically(directory + "/open-conduit-git", "#!/bin/sh\n" + script + "\n", 0755);
  }
  ~Impostor() { removeTree(directory); }
};

TEST_CASE("G3 a provider is locked down before it is talked to, and the kernel confirms it") {
  World world;
  auto instance = world.supervisor.start(world.check()).wait(world.io.waitScope);
  auto status = readProcessStatus(instance->pid());
  REQUIRE(status.has_value());
  CHECK(status->noNewPrivs);
  CHECK(status->seccomp == 2);
  CHECK(status->hasNoCapabilities());
  CHECK(instance->protections().notDumpable);
  CHECK(instance->protections().landlockFiles);
  auto answer = instance->as<proto::Git>().checkRequest().send().wait(world.io.waitScope);
  CHECK_THAT(std::string(answer.getVersion().cStr()), hasText("git version"));
  CHECK(world.supervisor.live().size() == 1);
}

TEST_CASE("G3 a provider's environment is made from nothing") {
  REQUIRE(setenv("OC_TEST_SECRET", "hunter2", 1) == 0);
  World world;
  auto readEnvironment = [&world]() {
    Impostor impostor("tr '\\0' '\\n' < /proc/$$/environ > \"$(dirname \"$0\")/environ\"");
    supervisor::Supervisor other(world.io, impostor.directory);
    std::map<std::string, std::vector<std::string>> granted;
    if (getenv("OC_TEST_GRANT") != nullptr) granted["git"] = {"OC_TEST_SECRET"};
    other.setPassEnv(granted);
    other.start(world.check()).then([](auto&&) {}, [](kj::Exception&&) {}).wait(world.io.waitScope);
    return readFile(impostor.directory + "/environ", 65536);
  };
  CHECK_THAT(readEnvironment(), !hasText("hunter2"));
  // Control: what the config grants does arrive.
  REQUIRE(setenv("OC_TEST_GRANT", "1", 1) == 0);
  CHECK_THAT(readEnvironment(), hasText("hunter2"));
  unsetenv("OC_TEST_GRANT");
  unsetenv("OC_TEST_SECRET");
}

TEST_CASE("G3 a program that says nothing, nonsense, or another's pid is no provider") {
  World world;
  auto start = [&world](const std::string& script) {
    Impostor impostor(script);
    supervisor::Supervisor other(world.io, impostor.directory);
    return other.start(world.check())
        .then([](kj::Own<supervisor::Instance>) { return std::string("it started"); },
              [](kj::Exception&& exception) { return describe(exception); })
        .wait(world.io.waitScope);
  };
  CHECK_THAT(start("exit 0"), hasText("open-conduit-git did not start"));
  CHECK_THAT(start("printf hello >&3; exec sleep 600"), hasText("handshake"));
  // pid 1 is not ours.
  CHECK_THAT(start("printf 'P\\002\\000\\000\\000R' >&3; exec sleep 600"), hasText("not ours"));
  // Its own pid, ready, and nothing locked down: the kernel knows better.
  CHECK_THAT(
      start("p=$$; printf P >&3; for i in 1 2 3 4; do printf \"\\\\$(printf %o $((p % 256)))\" >&3; p=$((p / 256)); "
            "done; printf R >&3; exec sleep 600"),
      hasText("kernel says"));
}

TEST_CASE("a provider that is missing, or refuses its job, is named with the reason") {
  World world;
  auto missing = world.check();
  missing.provider = "nonexistent";
  CHECK_THAT(world.whyNot(missing), hasText("open-conduit-nonexistent"));
  auto nonsense = world.check();
  nonsense.job = {"juggle"};
  CHECK_THAT(world.whyNot(nonsense), hasText("open-conduit-git did not start"));
  CHECK(world.supervisor.live().empty());
}

TEST_CASE("a provider's death is noticed, and its end leaves no process") {
  World world;
  pid_t pid;
  {
    auto instance = world.supervisor.start(world.check()).wait(world.io.waitScope);
    pid = instance->pid();
    REQUIRE(kill(pid, SIGKILL) == 0);
    auto end = instance->onEnd().wait(world.io.waitScope);
    CHECK(end.signaled);
    CHECK(end.code == SIGKILL);
  }
  {
    auto instance = world.supervisor.start(world.check()).wait(world.io.waitScope);
    pid = instance->pid();
  }
  for (int i = 0; i < 500 && kill(pid, 0) == 0; ++i) {
    world.io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(world.io.waitScope);
  }
  CHECK(kill(pid, 0) < 0);
}

TEST_CASE("a resident provider is restarted with back-off, and given up loudly") {
  World world;
  supervisor::RestartPolicy quick;
  quick.first = 1 * kj::MILLISECONDS;
  quick.attempts = 3;

  auto hopeless = world.check();
  hopeless.job = {"juggle"};
  supervisor::Resident never(world.supervisor, hopeless, quick);
  never.onGivenUp().wait(world.io.waitScope);
  CHECK(never.state() == supervisor::Resident::State::GivenUp);
  CHECK(never.failures() == 3);
  CHECK_FALSE(never.trouble().empty());

  supervisor::Resident lasting(world.supervisor, world.check(), quick);
  auto untilRunning = [&world, &lasting]() {
    for (int i = 0; i < 3000 && lasting.state() != supervisor::Resident::State::Running; ++i) {
      world.io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(world.io.waitScope);
    }
    REQUIRE(lasting.state() == supervisor::Resident::State::Running);
  };
  untilRunning();
  pid_t before = 0;
  KJ_IF_MAYBE (instance, lasting.current()) {
    before = instance->pid();
    instance->kill();
    instance->onEnd().wait(world.io.waitScope);
  }
  REQUIRE(before != 0);
  world.io.provider->getTimer().afterDelay(50 * kj::MILLISECONDS).wait(world.io.waitScope);
  untilRunning();
  KJ_IF_MAYBE (instance, lasting.current()) {
    CHECK(instance->pid() != before);
  }
}

}  // namespace
}  // namespace oc
