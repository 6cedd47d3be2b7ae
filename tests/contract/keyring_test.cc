// The keyring provider against a real gnome-keyring, with secret-tool as the independent witness.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>

#include "base/procfs.h"
#include "base/session_bus.h"
#include "daemon/work/secrets.h"
#include "tests/catch.h"
#include "tests/keyring_session.h"

using namespace oc;
using test::KeyringSession;

namespace {

std::string provider() {
  const char* programs = getenv("OPEN_CONDUIT_PROGRAMS");
  REQUIRE(programs != nullptr);
  return std::string(programs) + "/open-conduit-keyring";
}

struct Daemon {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  supervisor::Supervisor supervisor{io, getenv("OPEN_CONDUIT_PROGRAMS")};

  std::string read(const KeyringSession& session, const std::string& reference) {
    auto own = session.environ();
    auto value = work::readSecret(supervisor, own, "it", reference).wait(io.waitScope);
    return value.ok() ? std::string(value.value().view()) : value.refusal().reason + ": " + value.refusal().what;
  }
};

}  // namespace

TEST_CASE("D3 keyring: what is set is found by another client, and the other way round") {
  KeyringSession session;
  auto set = session.run(provider(), {"set", "claude-token"}, "hunter2 with spaces\n");
  INFO(set.err);
  CHECK(set.code == 0);
  CHECK(set.out == "claude-token is in the keyring\n");
  CHECK(session.run("/usr/bin/secret-tool", {"lookup", "application", "open-conduit", "name", "claude-token"}).out ==
        "hunter2 with spaces");

  CHECK(session
            .run("/usr/bin/secret-tool", {"store", "--label=x", "application", "open-conduit", "name", "theirs"},
                 "from outside")
            .code == 0);
  CHECK(session.run(provider(), {"get", "theirs"}).out == "from outside");
  CHECK(session.run(provider(), {"list"}).out == "claude-token\ntheirs\n");
  // What is not ours is not listed.
  CHECK(session.run("/usr/bin/secret-tool", {"store", "--label=y", "application", "another", "name", "no"}, "x").code ==
        0);
  CHECK(session.run(provider(), {"list", "--json"}).out == "{\"names\":[\"claude-token\",\"theirs\"]}\n");

  auto again = session.run(provider(), {"set", "claude-token"}, "another");
  CHECK(again.out == "claude-token is in the keyring, in the place of the one before\n");
  CHECK(session.run(provider(), {"get", "claude-token"}).out == "another");
  CHECK(session.run(provider(), {"rm", "claude-token"}).code == 0);
  CHECK(session.run(provider(), {"rm", "claude-token"}).code == 1);
  CHECK(session.run("/usr/bin/secret-tool", {"lookup", "application", "open-conduit", "name", "claude-token"})
            .out.empty());
  CHECK(session.run("/usr/bin/secret-tool", {"lookup", "application", "another", "name", "no"}).out == "x");
}

TEST_CASE("D3 keyring: a value may have 64 KiB of any bytes but NUL") {
  KeyringSession session;
  std::string value;
  for (size_t i = 0; i < (64u << 10); ++i) value += static_cast<char>(1 + i % 255);
  CHECK(session.run(provider(), {"set", "big"}, value).code == 0);
  CHECK(session.run(provider(), {"get", "big"}).out == value);
  Daemon daemon;
  CHECK(daemon.read(session, "keyring:big") == value);
  CHECK(session.run(provider(), {"set", "big"}, value + "xx").code == 1);
  CHECK(session.run(provider(), {"set", "big"}, "").code == 1);
  CHECK(session.run(provider(), {"get", "big"}).out == value);
}

TEST_CASE("D3 keyring: the daemon reads by an instance that is gone afterwards") {
  KeyringSession session;
  REQUIRE(session.run(provider(), {"set", "token"}, "hunter2").code == 0);
  Daemon daemon;
  CHECK(daemon.read(session, "keyring:token") == "hunter2");
  CHECK(daemon.supervisor.live().empty());
  CHECK_THAT(daemon.read(session, "keyring:none"), hasText("the keyring has no secret none"));
  auto names = work::keyringNames(daemon.supervisor, session.environ()).wait(daemon.io.waitScope);
  REQUIRE(names.ok());
  CHECK(names.value() == std::vector<std::string>{"token"});
  CHECK(daemon.supervisor.live().empty());
}

TEST_CASE("D3 keyring: the provider makes no socket, opens no file and starts nothing, and works all the same") {
  KeyringSession session;
  auto own = session.environ();
  auto bus = dialSessionBus(own);
  REQUIRE(bus.ok());
  auto pipe = makePipe();
  Daemon daemon;
  supervisor::LaunchSpec spec;
  spec.provider = "keyring";
  spec.job = {"list"};
  spec.descriptors = {{bus.value().get(), 4}, {pipe.second.get(), 5}};
  auto instance = daemon.supervisor.start(kj::mv(spec)).wait(daemon.io.waitScope);
  CHECK(instance->protections().landlockFiles);
  CHECK(instance->protections().notDumpable);
  CHECK(readProcessStatus(instance->pid())->seccomp == 2);
  // Its command line has the job and no value; the environment has no bus.
  auto words = readFile("/proc/" + std::to_string(instance->pid()) + "/cmdline", 65536);
  CHECK_THAT(words, hasText("list"));
  CHECK_THAT(words, !hasText("unix:path"));
}

TEST_CASE("D3 keyring: one that is locked, missing or without a bus is refused with what to do") {
  Daemon daemon;
  {
    KeyringSession session;
    REQUIRE(session.run(provider(), {"set", "token"}, "hunter2").code == 0);
    session.lock();
    for (auto& words :
         std::vector<std::vector<std::string>>{{"get", "token"}, {"set", "new"}, {"rm", "token"}, {"list"}}) {
      auto refused = session.run(provider(), words, "x");
      CHECK(refused.code == 1);
      CHECK_THAT(refused.err, hasText("secret_unavailable"));
      CHECK_THAT(refused.err, hasText("locked"));
      CHECK_THAT(refused.err, hasText("file:/path"));
      CHECK_THAT(refused.err, hasText("gnome-keyring-daemon --unlock"));
    }
    CHECK_THAT(daemon.read(session, "keyring:token"),
               hasText("secret_unavailable: the secret it cannot be read: the keyring is locked"));
  }
  KeyringSession withoutKeyring(false);
  auto refused = withoutKeyring.run(provider(), {"list"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, hasText("no program offers a keyring"));
  CHECK_THAT(daemon.read(withoutKeyring, "keyring:token"), hasText("no program offers a keyring"));
  withoutKeyring.address = "unix:path=/nonexistent/bus";
  CHECK_THAT(withoutKeyring.run(provider(), {"list"}).err, hasText("the session bus does not answer"));
}

TEST_CASE("D3 keyring: a bus that says nonsense, or nothing, is refused and not waited for") {
  Daemon daemon;
  char name[] = "/tmp/oc-keyring-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  std::string directory = name, path = directory + "/bus";
  int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  kj::AutoCloseFd owned(listening);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  REQUIRE(bind(listening, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(listening, 4) == 0);
  pid_t peer = fork();
  if (peer == 0) {
    for (;;) {
      int client = accept(listening, nullptr, nullptr);
      char buffer[4096];
      if (::read(client, buffer, sizeof(buffer)) <= 0) _exit(0);
      writeAll(client, "HTTP/1.1 200 OK\r\n\r\n" + std::string(4096, 'x'));
      close(client);
    }
  }
  work::Environment own = {{"DBUS_SESSION_BUS_ADDRESS", "unix:path=" + path}};
  auto value = work::readSecret(daemon.supervisor, own, "it", "keyring:token").wait(daemon.io.waitScope);
  REQUIRE_FALSE(value.ok());
  CHECK(value.refusal().reason == "secret_unavailable");
  kill(peer, SIGKILL);
  waitpid(peer, nullptr, 0);
  removeTree(directory);
}
