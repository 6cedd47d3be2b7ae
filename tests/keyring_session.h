// A session bus and a gnome-keyring of the test's own, real ones; and secret-tool, which is nobody's of ours.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/spawn.h"
#include "tests/catch.h"

namespace oc::test {

class KeyringSession {
 public:
  // Without a keyring there is only the bus, and no service that it could start.
  explicit KeyringSession(bool withKeyring = true) {
    char name[] = "/tmp/oc-keyring-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    directory = name;
    startBus();
    if (withKeyring) startKeyring();
  }
  ~KeyringSession() {
    for (auto* process : {&keyring, &bus}) {
      if (process->pid == 0) continue;
      ::kill(process->pid, SIGKILL);
      waitpid(process->pid, nullptr, 0);
    }
    removeTree(directory);
  }

  std::map<std::string, std::string> environ() const {
    return {{"HOME", directory},
            {"PATH", "/usr/local/bin:/usr/bin:/bin"},
            {"DBUS_SESSION_BUS_ADDRESS", address},
            {"XDG_RUNTIME_DIR", directory}};
  }

  struct Result {
    int code;
    std::string out, err;
  };
  Result run(const std::string& program, std::vector<std::string> words, const std::string& input = "") const {
    auto in = makePipe(), out = makePipe(), err = makePipe();
    auto spec = specOf(program, std::move(words));
    spec.descriptors = {{in.first.get(), 0}, {out.second.get(), 1}, {err.second.get(), 2}};
    auto spawned = spawn(spec);
    in.first = nullptr;
    out.second = nullptr;
    err.second = nullptr;
    signal(SIGPIPE, SIG_IGN);
    try {
      writeAll(in.second.get(), input);
    } catch (const kj::Exception&) {
    }
    in.second = nullptr;
    Result result{-1, readAll(out.first.get(), 1 << 20), readAll(err.first.get(), 1 << 20)};
    int status;
    REQUIRE(waitpid(spawned.pid, &status, 0) == spawned.pid);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return result;
  }

  void lock() const {
    auto done = run("/usr/bin/dbus-send",
                    {"--session", "--print-reply", "--dest=org.freedesktop.secrets", "/org/freedesktop/secrets",
                     "org.freedesktop.Secret.Service.Lock", "array:objpath:/org/freedesktop/secrets/collection/login"});
    INFO(done.err);
    REQUIRE(done.code == 0);
  }

  std::string directory, address;

 private:
  SpawnSpec specOf(const std::string& program, std::vector<std::string> words) const {
    SpawnSpec spec;
    spec.program = program;
    spec.arguments = std::move(words);
    for (auto& [name, value] : environ()) {
      if (!value.empty()) spec.environment.emplace_back(name, value);
    }
#ifdef OPEN_CONDUIT_SANITIZED
    spec.environment.emplace_back("ASAN_OPTIONS", "detect_leaks=0");
#endif
    return spec;
  }

  static std::string readLine(int fd) {
    std::string line;
    for (char c; ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  // With a config of its own: the system's would let the bus start the machine's services.
  void startBus() {
    auto config = directory + "/bus.conf";
    writeFileAtomically(
        config,
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
        " \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
        "<busconfig><type>session</type><listen>unix:path=" +
            directory +
            "/bus</listen><policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>"
            "<allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>\n");
    auto out = makePipe();
    auto spec = specOf("/usr/bin/dbus-daemon", {"--config-file=" + config, "--nofork", "--print-address=1"});
    spec.descriptors = {{out.second.get(), 1}};
    bus = spawn(spec);
    out.second = nullptr;
    address = readLine(out.first.get());
    REQUIRE_FALSE(address.empty());
  }

  void startKeyring() {
    auto in = makePipe(), out = makePipe();
    auto spec = specOf("/usr/bin/gnome-keyring-daemon", {"--foreground", "--unlock", "--components=secrets"});
    spec.descriptors = {{in.first.get(), 0}, {out.second.get(), 1}};
    keyring = spawn(spec);
    in.first = nullptr;
    out.second = nullptr;
    writeAll(in.second.get(), "a password");
    in.second = nullptr;
    // It has its name on the bus before long; a bound for one that never has.
    for (int i = 0; i < 200; ++i) {
      auto asked = run("/usr/bin/dbus-send",
                       {"--session", "--print-reply", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus",
                        "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"});
      if (asked.out.find("boolean true") != std::string::npos) return;
      usleep(50'000);
    }
    FAIL("gnome-keyring-daemon did not come up");
  }

  Spawned bus{0, nullptr}, keyring{0, nullptr};
};

}  // namespace oc::test
