// The program itself, over a real socket, before a server process with a backend in memory.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/fd.h"
#include "base/json.h"
#include "base/spawn.h"
#include "daemon/control/server.h"
#include "tests/catch.h"
#include "tests/fakes/memory_backend.h"

using namespace oc;

namespace {

// Ends each run as its title says.
class ObedientBackend final : public fakes::MemoryBackend {
 public:
  void obey() {
    for (auto& run : memory().unendedRuns()) {
      auto title = memory().work(run.work)->title;
      if (title == "hang") continue;
      start(run.id);
      if (title == "succeed") end(run.id, state::Outcome::Succeeded, 0);
      if (title == "fail") end(run.id, state::Outcome::Failed, 3);
      if (title == "refuse") end(run.id, state::Outcome::Refused, -1, {"sandbox_denied", "no", "grant it"});
    }
  }
};

kj::Promise<void> obeyForever(kj::Timer& timer, ObedientBackend& backend) {
  return timer.afterDelay(20 * kj::MILLISECONDS).then([&timer, &backend]() {
    backend.obey();
    return obeyForever(timer, backend);
  });
}

[[noreturn]] void serveForever(int listening, const std::string& token) {
  auto io = kj::setupAsyncIo();
  SecretBytes secret(token);
  ObedientBackend backend;
  backend.add("hang");
  backend.print("r-00000001", "a\x1b[31mb\n");
  auto obeying = obeyForever(io.provider->getTimer(), backend).eagerlyEvaluate(nullptr);
  auto socket = io.lowLevelProvider->wrapListenSocketFd(kj::AutoCloseFd(listening));
  control::serve(io, kj::mv(socket), secret, backend).wait(io.waitScope);
  _exit(1);
}

struct Result {
  int code = -1;  // minus the signal when one ended it
  std::string out, err;
};

// A home of its own with a daemon in it.
class Home {
 public:
  Home() {
    char pattern[] = "/tmp/oc-cli-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    directory = pattern;
    makeDirectories(directory + "/runtime/open-conduit");
    makeDirectories(directory + "/state/open-conduit");
    writeFileAtomically(directory + "/state/open-conduit/operator-token", token);
  }
  ~Home() {
    stopDaemon();
    removeTree(directory);
  }

  void startDaemon() {
    auto path = directory + "/runtime/open-conduit/control.sock";
    unlink(path.c_str());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(fd >= 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(listen(fd, 64) == 0);
    daemon = fork();
    REQUIRE(daemon >= 0);
    if (daemon == 0) serveForever(fd, token);
    close(fd);
  }
  void stopDaemon() {
    if (daemon <= 0) return;
    kill(daemon, SIGKILL);
    waitpid(daemon, nullptr, 0);
    daemon = 0;
  }

  struct Running {
    Spawned process;
    kj::AutoCloseFd out, err;
  };
  // `outClosed`: nobody reads its standard output, from the beginning on.
  Running start(std::vector<std::string> words, bool outClosed = false) {
    const char* programs = getenv("OPEN_CONDUIT_PROGRAMS");
    REQUIRE(programs != nullptr);
    auto out = makePipe(), err = makePipe();
    if (outClosed) out.first = openFile("/dev/null", O_RDONLY);
    SpawnSpec spec;
    spec.program = std::string(programs) + "/open-conduit";
    spec.arguments = std::move(words);
    spec.environment = {{"HOME", directory},
                        {"XDG_CONFIG_HOME", directory + "/config"},
                        {"XDG_STATE_HOME", directory + "/state"},
                        {"XDG_DATA_HOME", directory + "/data"},
                        {"XDG_RUNTIME_DIR", directory + "/runtime"}};
    spec.descriptors = {{out.second.get(), 1}, {err.second.get(), 2}};
    return {spawn(spec), kj::mv(out.first), kj::mv(err.first)};
  }
  Result finish(Running running) {
    Result result;
    result.out = readAll(running.out, 64u << 20);
    result.err = readAll(running.err, 64u << 20);
    int status;
    REQUIRE(waitpid(running.process.pid, &status, 0) == running.process.pid);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return result;
  }
  Result run(std::vector<std::string> words) { return finish(start(std::move(words))); }

  std::string directory, token = std::string(32, 'k');

 private:
  pid_t daemon = 0;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the program talks to a daemon over its socket, with the token of the state directory") {
  Home home;
  CHECK(home.run({"status"}).code == 3);
  home.startDaemon();
  auto status = home.run({"status", "--json"});
  CHECK(status.err.empty());
  CHECK(status.code == 0);
  CHECK(parseJson(status.out)["pid"] == 4711);
  home.stopDaemon();
  auto gone = home.run({"status", "--json"});
  CHECK(gone.code == 3);
  CHECK(gone.out.empty());
  CHECK(parseJson(gone.err)["error"]["reason"] == "no_daemon");
}

TEST_CASE("the program with another token is not let in, and says whose token is meant") {
  Home home;
  home.startDaemon();
  auto file = home.directory + "/state/open-conduit/operator-token";
  writeFileAtomically(file, std::string(32, 'x'));
  auto wrong = home.run({"status"});
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.err, "token_wrong"));
  CHECK(!contains(wrong.err, "xxxx"));
  unlink(file.c_str());
  auto none = home.run({"status"});
  CHECK(none.code == 1);
  CHECK(contains(none.err, "operator-token"));
  writeFileAtomically(file, home.token);
  CHECK(home.run({"status"}).code == 0);
}

TEST_CASE("the program's exit code after --wait says what came of the run") {
  Home home;
  home.startDaemon();
  auto run = [&home](const char* title) {
    return home.run({"work", "new", "--binding", "demo/shell", "--title", title, "--wait"});
  };
  CHECK(run("succeed").code == 0);
  CHECK(run("fail").code == 1);
  auto refused = run("refuse");
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "sandbox_denied"));
  CHECK(contains(refused.err, "fix: grant it"));
}

TEST_CASE("Ctrl-C ends the program as Ctrl-C ends any, and says that the run goes on") {
  Home home;
  home.startDaemon();
  auto waiting = home.start({"work", "new", "--binding", "demo/shell", "--title", "hang", "--wait"});
  // The id comes before the waiting begins, and the signal is caught by then or soon after: the wait tells.
  char id[64];
  REQUIRE(read(waiting.out, id, sizeof(id)) > 0);
  for (int i = 0; i < 100; ++i) {
    auto status = readFile("/proc/" + std::to_string(waiting.process.pid) + "/status", 65536);
    auto blocked = std::stoull(status.substr(status.find("SigBlk:") + 7), nullptr, 16);
    auto caught = std::stoull(status.substr(status.find("SigCgt:") + 7), nullptr, 16);
    if ((blocked | caught) & (1u << (SIGINT - 1))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  kill(waiting.process.pid, SIGINT);
  auto result = home.finish(kj::mv(waiting));
  CHECK(result.code == -SIGINT);
  CHECK(contains(result.err, "goes on"));
  auto runs = home.run({"runs", "list", "--json"});
  CHECK(parseJson(runs.out)[0]["state"] == "queued");
}

TEST_CASE("runs logs writes the agent's bytes into a pipe") {
  Home home;
  home.startDaemon();
  CHECK(home.run({"runs", "logs", "r-00000001"}).out == "a\x1b[31mb\n");
}

TEST_CASE("a reader that has seen enough ends the program without a complaint") {
  Home home;
  home.startDaemon();
  auto result = home.finish(home.start({"runs", "logs", "-f", "r-00000001"}, true));
  CHECK(result.code == -SIGPIPE);
  CHECK(result.err.empty());
}

TEST_CASE("the program sets up no colours for a pipe") {
  Home home;
  home.startDaemon();
  auto status = home.run({"status"});
  CHECK(status.code == 0);
  CHECK(contains(status.out, "pid 4711"));
  CHECK(!contains(status.out, "\x1b"));
}
