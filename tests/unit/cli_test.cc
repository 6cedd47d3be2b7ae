// The command line in this process: words in, text and exit codes out, before the control server with a backend in
// memory.
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/client.h"
#include "cli/program.h"
#include "daemon/control/server.h"
#include "tests/catch.h"
#include "tests/fakes/memory_backend.h"

using namespace oc;
using namespace oc::cli;

namespace {

using Words = std::vector<std::string>;

struct Rig {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  SecretBytes token = SecretBytes::random(32);
  fakes::MemoryBackend backend;
  bool daemonRuns = true;
  std::string out, err, input;
  std::vector<kj::Own<Connection>> servers;
  // Called when a command begins to wait for Ctrl-C, with what sends it.
  std::function<void(kj::Own<kj::PromiseFulfiller<void>>)> onWait = [this](auto ctrlC) { waiting = kj::mv(ctrlC); };
  kj::Own<kj::PromiseFulfiller<void>> waiting;
  World world;

  Rig() {
    world.places = backend.places();
    world.look.home = "/home/me";
    world.look.now = 1'700'000'060'000;
    world.programs = "/nonexistent";
    world.out = [this](std::string_view bytes) { out += bytes; };
    world.err = [this](std::string_view bytes) { err += bytes; };
    world.readInput = [this](size_t most) { return input.substr(0, most); };
    world.io = [this]() -> kj::AsyncIoContext& { return io; };
    world.connect = [this]() { return connect(); };
    world.interrupted = [this]() {
      auto paf = kj::newPromiseAndFulfiller<void>();
      onWait(kj::mv(paf.fulfiller));
      return kj::mv(paf.promise);
    };
  }

  Link connect() {
    if (!daemonRuns) return connectToDaemon(io, world.places);
    auto pipe = io.provider->newTwoWayPipe();
    servers.push_back(kj::heap<Connection>(kj::mv(pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER,
                                           control::makeFront(io.provider->getTimer(), token, backend),
                                           RpcLimits{(64u << 20) / 8}, "client"));
    return logIn(io, kj::mv(pipe.ends[1]), token.view());
  }

  int run(const Words& words) {
    out.clear();
    err.clear();
    return runProgram(words, world);
  }
  Json json(const Words& words, int code = 0) {
    CHECK(run(words) == code);
    INFO(out << err);
    return parseJson(out);
  }
  Json errorJson(const Words& words, int code) {
    CHECK(run(words) == code);
    INFO(out << err);
    CHECK(out.empty());
    return parseJson(err)["error"];
  }
  // Does something to the world once the command waits (and its request has had the time to arrive).
  void whenItWaits(std::function<void()> act) {
    waiting = nullptr;
    later = untilItWaits().then([act = std::move(act)]() { act(); }).eagerlyEvaluate([](kj::Exception&& e) {
      FAIL(describe(e));
    });
  }
  kj::Promise<void> untilItWaits() {
    bool waits = waiting.get() != nullptr || !out.empty();
    return io.provider->getTimer().afterDelay(20 * kj::MILLISECONDS).then([this, waits]() -> kj::Promise<void> {
      if (waits) return kj::READY_NOW;
      return untilItWaits();
    });
  }
  kj::Promise<void> later = nullptr;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Refusal denied() { return {"sandbox_denied", "the policy reaches into ~/.ssh", "take ~/.ssh out of write"}; }

}  // namespace

// ---- words

TEST_CASE("open-conduit alone says what there is") {
  Rig rig;
  CHECK(rig.run({}) == 0);
  CHECK(rig.err.empty());
  for (auto command : {"daemon", "drain", "status", "doctor", "config", "work", "runs"})
    CHECK(contains(rig.out, command));
  CHECK(rig.run({"--help"}) == 0);
  CHECK(contains(rig.out, "runs"));
  CHECK(rig.run({"work", "new", "--help"}) == 0);
  CHECK(contains(rig.out, "--body-file"));
  CHECK(rig.run({"--version"}) == 0);
  CHECK(rig.out == "open-conduit " OPEN_CONDUIT_VERSION "\n");
}

TEST_CASE("wrong usage is told on standard error, with 2, and asks no daemon") {
  Rig rig;
  rig.daemonRuns = false;
  rig.world.places.runtimeDir = "/nonexistent";
  auto words =
      GENERATE(Words{"bogus"}, Words{"runs"}, Words{"runs", "lst"}, Words{"runs", "get"},
               Words{"runs", "get", "a", "b"}, Words{"work", "new"}, Words{"status", "--bogus"},
               Words{"work", "new", "--binding", "demo"}, Words{"work", "new", "--binding", "/x"},
               Words{"work", "new", "--binding", "x/"}, Words{"work", "new", "--binding", "a/b", "--title", "a\nb"},
               Words{"work", "new", "--binding", "a/b", "--title", "\x1b]52;c;aGk=\x07"},
               Words{"work", "new", "--binding", "a/b", "--title", std::string(1025, 't')},
               Words{"work", "new", "--binding", "a/b", "--body-file", "/nonexistent/body"},
               Words{"work", "new", "--binding", "a/b", "--body-file", "/"}, Words{"runs", "list", "--limit", "many"});
  CHECK(rig.run(words) == 2);
  CHECK(rig.out.empty());
  CHECK(rig.err.starts_with("open-conduit: "));
  CHECK(!contains(rig.err, "\x1b"));
  CHECK(!contains(rig.err, "\x07"));
  words.push_back("--json");
  auto error = rig.errorJson(words, 2);
  CHECK(error["reason"] == "usage");
  CHECK(error["message"].get<std::string>().size() > 3);
}

TEST_CASE("a misspelt command is told the one that was meant") {
  Rig rig;
  CHECK(rig.run({"stauts"}) == 2);
  CHECK(contains(rig.err, "did you mean status?"));
  CHECK(rig.run({"work", "lst"}) == 2);
  CHECK(contains(rig.err, "did you mean list?"));
  CHECK(rig.run({"--config", "stauts", "status"}) == 0);
}

TEST_CASE("without a daemon the exit code is 3, and how to start one is said") {
  Rig rig;
  rig.daemonRuns = false;
  rig.world.places.runtimeDir = "/nonexistent/open-conduit";
  auto words = GENERATE(Words{"status"}, Words{"runs", "list"}, Words{"runs", "get", "r-1"},
                        Words{"runs", "logs", "r-1"}, Words{"runs", "policy", "r-1"}, Words{"runs", "stop", "r-1"},
                        Words{"work", "list"}, Words{"policy", "suggest", "r-1"}, Words{"work", "get", "w-1"},
                        Words{"work", "finish", "w-1"}, Words{"work", "cancel", "w-1"},
                        Words{"work", "new", "--binding", "a/b"}, Words{"drain"}, Words{"reload"});
  CHECK(rig.run(words) == 3);
  CHECK(rig.out.empty());
  CHECK(contains(rig.err, "no daemon is running"));
  CHECK(contains(rig.err, "open-conduit daemon"));
  CHECK(contains(rig.err, "systemctl --user start open-conduit"));
  words.push_back("--json");
  CHECK(rig.errorJson(words, 3)["reason"] == "no_daemon");
}

TEST_CASE("a socket path that is too long is explained") {
  Rig rig;
  rig.daemonRuns = false;
  rig.world.places.runtimeDir = "/" + std::string(120, 'd');
  CHECK(rig.run({"status"}) == 1);
  CHECK(contains(rig.err, "XDG_RUNTIME_DIR"));
  CHECK(rig.err.starts_with("open-conduit: the socket path"));
}

// ---- Work

TEST_CASE("work new prints the Work's id") {
  Rig rig;
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--title", "Add a header"}) == 0);
  CHECK(rig.out == "w-00000001\n");
  CHECK(rig.err.empty());
  auto document = rig.json({"work", "new", "--binding", "demo/shell", "--json"});
  CHECK(document == Json({{"id", "w-00000002"}, {"run", "r-00000002"}}));
}

TEST_CASE("a body comes from a file or from standard input, as it is") {
  Rig rig;
  char path[] = "/tmp/oc-body-XXXXXX";
  kj::AutoCloseFd file(mkstemp(path));
  KJ_DEFER(unlink(path));
  std::string body = std::string("a\0b\xff", 4) + std::string(10u << 20, 'x');
  writeAll(file, body);
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--body-file", path}) == 0);
  CHECK(rig.backend.lastBody == body);
  rig.input = "from the pipe";
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--body-file", "-"}) == 0);
  CHECK(rig.backend.lastBody == "from the pipe");
}

TEST_CASE("a body over 16 MiB is refused before it is sent") {
  Rig rig;
  rig.input = std::string(16u << 20, 'x');
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--body-file", "-"}) == 0);
  rig.input += 'x';
  auto before = rig.servers.size();
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--body-file", "-"}) == 2);
  CHECK(contains(rig.err, "16 MiB"));
  CHECK(rig.servers.size() == before);
}

TEST_CASE("what the daemon refuses is told with its word and its fix") {
  Rig rig;
  CHECK(rig.run({"work", "new", "--binding", "demo/other"}) == 1);
  CHECK(rig.err == "open-conduit: request_invalid: there is no binding demo/other\n  fix: name one of the config\n");
  CHECK(rig.out.empty());
  auto error = rig.errorJson({"work", "new", "--binding", "demo/other", "--json"}, 1);
  CHECK(contains(error["meaning"].get<std::string>(), "no such binding"));
  error.erase("meaning");
  CHECK(error == Json({{"reason", "request_invalid"},
                       {"message", "there is no binding demo/other"},
                       {"fix", "name one of the config"}}));
}

TEST_CASE("--wait ends with the run, and its exit code says how") {
  Rig rig;
  auto outcome = GENERATE(state::Outcome::Succeeded, state::Outcome::Failed, state::Outcome::Refused,
                          state::Outcome::Stopped, state::Outcome::Interrupted);
  bool good = outcome == state::Outcome::Succeeded;
  rig.whenItWaits([&]() {
    rig.backend.start("r-00000001");
    rig.backend.end("r-00000001", outcome, good ? 0 : 7, outcome == state::Outcome::Refused ? denied() : Refusal{});
  });
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--wait"}) == (good ? 0 : 1));
  CHECK(rig.out == "w-00000001\n");
  CHECK(contains(rig.err, "run r-00000001   " + std::string(state::toWord(outcome))));
  CHECK(contains(rig.err, "fix: take ~/.ssh out of write") == (outcome == state::Outcome::Refused));
  CHECK(contains(rig.err, "sandbox_denied") == (outcome == state::Outcome::Refused));
}

TEST_CASE("--wait --json is one document, with the run as runs get has it") {
  Rig rig;
  rig.whenItWaits([&]() {
    rig.backend.start("r-00000001");
    rig.backend.end("r-00000001", state::Outcome::Refused, -1, denied());
  });
  auto document = rig.json({"work", "new", "--binding", "demo/shell", "--wait", "--json"}, 1);
  CHECK(document["id"] == "w-00000001");
  CHECK(document["ended"] == rig.json({"runs", "get", "r-00000001", "--json"}));
}

TEST_CASE("Ctrl-C ends the waiting and leaves the run going") {
  Rig rig;
  rig.whenItWaits([&]() { rig.waiting->fulfill(); });
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--wait"}) == interruptedCode);
  CHECK(rig.out == "w-00000001\n");
  CHECK(contains(rig.err, "run r-00000001 goes on"));
  CHECK(rig.backend.memory().run("r-00000001")->state == state::RunState::Queued);
}

TEST_CASE("--wait waits on over a daemon's restart") {
  Rig rig;
  rig.whenItWaits([&]() {
    rig.servers.clear();
    rig.backend.start("r-00000001");
    rig.backend.end("r-00000001", state::Outcome::Succeeded, 0);
  });
  CHECK(rig.run({"work", "new", "--binding", "demo/shell", "--wait"}) == 0);
  CHECK(contains(rig.err, "the daemon went away"));
  CHECK(contains(rig.err, "succeeded"));
}

TEST_CASE("Work is listed, shown, finished and cancelled") {
  Rig rig;
  CHECK(rig.run({"work", "list"}) == 0);
  CHECK(contains(rig.out, "work new"));
  CHECK(rig.json({"work", "list", "--json"}) == Json::array());
  auto one = rig.backend.add("First");
  auto two = rig.backend.add("Second");
  CHECK(rig.run({"work", "list"}) == 0);
  CHECK(contains(rig.out, "w-00000002  demo/shell  open   1     59 s ago  Second"));
  auto list = rig.json({"work", "list", "--json"});
  REQUIRE(list.size() == 2);
  CHECK(list[0]["title"] == "Second");
  CHECK(rig.json({"work", "list", "--json", "-n", "1"}).size() == 1);

  CHECK(rig.run({"work", "get", "w-00000001"}) == 0);
  CHECK(contains(rig.out, "title       First\n"));
  auto shown = rig.json({"work", "get", "w-00000001", "--json"});
  CHECK(shown["binding"] == "demo/shell");
  CHECK(shown["runs"] == Json({"r-00000001"}));
  CHECK(shown["ended_at"].is_null());

  CHECK(rig.run({"work", "finish", one.work}) == 1);
  CHECK(contains(rig.err, "work_busy"));
  rig.backend.end(one.run, state::Outcome::Succeeded, 0);
  CHECK(rig.run({"work", "finish", one.work}) == 0);
  CHECK(contains(rig.out, "finished"));
  CHECK(contains(rig.out, "beware      .envrc"));
  auto cancelled = rig.json({"work", "cancel", two.work, "--json"});
  CHECK(cancelled["state"] == "cancelled");
  CHECK(cancelled["warnings"] == Json({".envrc"}));
  CHECK(rig.run({"work", "get", "w-nothere"}) == 1);
  CHECK(contains(rig.err, "work_unknown"));
}

// ---- runs

TEST_CASE("runs get --json has the documented fields, and null for what is not known") {
  Rig rig;
  auto ids = rig.backend.add("T");
  auto queued = rig.json({"runs", "get", ids.run, "--json"});
  for (auto name : {"id", "work", "binding", "state", "outcome", "reason", "message", "fix", "exit_code", "created_at",
                    "started_at", "ended_at", "attempt", "policy", "branch", "commits", "usage"}) {
    CHECK(queued.contains(name));
  }
  for (auto name : {"outcome", "reason", "message", "fix", "exit_code", "started_at", "ended_at", "usage"}) {
    CHECK(queued[name].is_null());
  }
  CHECK(queued["policy"] == Json({{"kind", nullptr}, {"sha256", nullptr}}));

  rig.backend.start(ids.run);
  rig.backend.end(ids.run, state::Outcome::Failed, 7);
  auto row = *rig.backend.memory().run(ids.run);
  row.policyKind = "srt";
  row.planSha256 = std::string(64, 'a');
  row.commits = 2;
  row.savedAs = "agent/w-00000001";
  rig.backend.memory().updateRun(row);
  auto ended = rig.json({"runs", "get", ids.run, "--json"});
  CHECK(ended["id"] == "r-00000001");
  CHECK(ended["work"] == "w-00000001");
  CHECK(ended["binding"] == "demo/shell");
  CHECK(ended["state"] == "ended");
  CHECK(ended["outcome"] == "failed");
  CHECK(ended["exit_code"] == 7);
  CHECK(ended["created_at"] == "2023-11-14T22:13:20.001Z");
  CHECK(ended["ended_at"] == "2023-11-14T22:13:22.001Z");
  CHECK(ended["attempt"] == 1);
  CHECK(ended["policy"]["kind"] == "srt");
  CHECK(ended["policy"]["sha256"] == std::string(64, 'a'));
  CHECK(ended["branch"] == "agent/w-00000001");
  CHECK(ended["commits"] == 2);
}

TEST_CASE("runs get is aligned text for people") {
  Rig rig;
  auto ids = rig.backend.add("Add a header");
  rig.backend.start(ids.run);
  rig.backend.end(ids.run, state::Outcome::Succeeded, 0);
  auto row = *rig.backend.memory().run(ids.run);
  row.policyKind = "srt";
  row.planSha256 = "3f1c2a9e8b7d" + std::string(52, '0');
  row.commits = 2;
  row.savedAs = "agent/w-00000001";
  row.notes = {"the log reached its cap"};
  rig.backend.memory().updateRun(row);
  CHECK(rig.run({"runs", "get", ids.run}) == 0);
  CHECK(rig.out ==
        "run         r-00000001   demo/shell   succeeded in 1.9 s\n"
        "work        w-00000001   Add a header\n"
        "branch      agent/w-00000001   2 commits, saved to ~/code/demo\n"
        "sandbox     srt   policy 3f1c2a9e8b7d   (open-conduit runs policy r-00000001)\n"
        "note        the log reached its cap\n");
  row.savedAs = "agent/w-00000001-kept";
  rig.backend.memory().updateRun(row);
  CHECK(rig.run({"runs", "get", ids.run}) == 0);
  CHECK(contains(rig.out, "as agent/w-00000001-kept (agent/w-00000001 was in the way)"));
}

TEST_CASE("a refused run shows why and the fix") {
  Rig rig;
  auto ids = rig.backend.add("T");
  rig.backend.end(ids.run, state::Outcome::Refused, -1, denied());
  CHECK(rig.run({"runs", "get", ids.run}) == 0);
  CHECK(contains(rig.out, "refused: sandbox_denied\n"));
  CHECK(contains(rig.out, "why         the policy reaches into ~/.ssh\n"));
  CHECK(contains(rig.out, "fix         take ~/.ssh out of write\n"));
}

TEST_CASE("runs list shows the newest 50 to people and all to scripts") {
  Rig rig;
  for (int i = 0; i < 60; ++i) rig.backend.add("T" + std::to_string(i));
  CHECK(rig.run({"runs", "list"}) == 0);
  CHECK(std::count(rig.out.begin(), rig.out.end(), '\n') == 52);
  CHECK(contains(rig.out, "10 older ones: --limit 0 shows all"));
  CHECK(rig.run({"runs", "list", "--limit", "0"}) == 0);
  CHECK(std::count(rig.out.begin(), rig.out.end(), '\n') == 61);
  CHECK(rig.json({"runs", "list", "--json"}).size() == 60);
  CHECK(rig.json({"runs", "list", "--json", "--limit", "3"}).size() == 3);
  auto ofOne = rig.json({"runs", "list", "--json", "--work", "w-00000007"});
  REQUIRE(ofOne.size() == 1);
  CHECK(ofOne[0]["id"] == "r-00000007");
  CHECK(rig.run({"runs", "list", "--work", "w-nothere"}) == 1);
  CHECK(contains(rig.err, "work_unknown: there is no Work w-nothere"));
  CHECK(rig.run({"runs", "list", "--limit", "-1"}) == 2);
  CHECK(contains(rig.err, "1000000"));
  CHECK(rig.err.size() < 200);
}

TEST_CASE("an agent's words cannot drive a terminal: titles, branches, reasons") {
  Rig rig;
  auto ids = rig.backend.add("T");
  auto work = *rig.backend.memory().work(ids.work);
  work.title =
      "a\x1b]52;c;aGk=\x07\xe2\x80\xae"
      "b\xc2\x9b"
      "31m";
  work.branch = "agent/\x1b[2J";
  rig.backend.memory().updateWork(work);
  rig.backend.end(ids.run, state::Outcome::Failed, 1, {"x\x1b", "m\x1b[31m\nsecond\rline", "f\x1b"});
  rig.world.look.terminal = GENERATE(false, true);
  for (auto& words :
       {Words{"runs", "get", ids.run}, Words{"runs", "list"}, Words{"work", "list"}, Words{"work", "get", ids.work},
        Words{"runs", "get", ids.run, "--json"}, Words{"work", "list", "--json"}}) {
    CHECK(rig.run(words) == 0);
    for (auto bad : {"\x1b", "\x07", "\r"}) CHECK(!contains(rig.out, bad));
    bool json = words.back() == "--json";
    // A pipe gets JSON in UTF-8; a terminal nothing but ASCII.
    if (!json || rig.world.look.terminal) {
      for (auto bad : {"\xe2\x80\xae", "\xc2\x9b"}) CHECK(!contains(rig.out, bad));
    }
  }
}

TEST_CASE("colours only on a terminal that wants them") {
  Rig rig;
  auto ids = rig.backend.add("T");
  rig.backend.end(ids.run, state::Outcome::Succeeded, 0);
  CHECK(rig.run({"runs", "get", ids.run}) == 0);
  CHECK(!contains(rig.out, "\x1b"));
  rig.world.look.terminal = rig.world.look.colour = true;
  CHECK(rig.run({"runs", "get", ids.run}) == 0);
  CHECK(contains(rig.out, "\x1b[32msucceeded"));
  CHECK(rig.run({"runs", "get", ids.run, "--json"}) == 0);
  CHECK(!contains(rig.out, "\x1b"));
}

TEST_CASE("runs logs gives a pipe the agent's bytes, and a terminal text") {
  Rig rig;
  auto ids = rig.backend.add("T");
  std::string bytes = std::string("a\x1b[31mred\x1b[0m\x1b]52;c;x\x07\0\xff", 24) + std::string(700'000, 'x') + "end";
  rig.backend.print(ids.run, bytes);
  CHECK(rig.run({"runs", "logs", ids.run}) == 0);
  CHECK(rig.out == bytes);
  rig.world.look.terminal = true;
  CHECK(rig.run({"runs", "logs", ids.run}) == 0);
  CHECK(!contains(rig.out, "\x1b"));
  CHECK(contains(rig.out, "ared\\x1b]52;c;x\\x07\\x00\\xff"));
  CHECK(rig.out.ends_with("xend"));
  rig.world.look.terminal = false;
  auto document = rig.json({"runs", "logs", ids.run, "--json"});
  CHECK(document["ended"] == false);
  CHECK(document["bytes"] == bytes.size());
}

TEST_CASE("runs logs -f goes on until the run has ended") {
  Rig rig;
  auto ids = rig.backend.add("T");
  rig.backend.print(ids.run, "one\n");
  rig.whenItWaits([&]() {
    rig.backend.print(ids.run, "two\n");
    rig.backend.end(ids.run, state::Outcome::Succeeded, 0);
  });
  CHECK(rig.run({"runs", "logs", "-f", ids.run}) == 0);
  CHECK(rig.out == "one\ntwo\n");
}

TEST_CASE("runs policy --json is exactly what was hashed") {
  Rig rig;
  auto ids = rig.backend.add("T");
  CHECK(rig.run({"runs", "policy", ids.run}) == 1);
  CHECK(contains(rig.err, "plan_unknown"));
  std::string plan = R"({"kind":"srt","settings":{"a":[1,2]}})";
  rig.backend.memory().pinPlan(ids.run, plan, sha256Hex(plan));
  CHECK(rig.run({"runs", "policy", ids.run, "--json"}) == 0);
  CHECK(rig.out == plan);
  CHECK(rig.run({"runs", "policy", ids.run}) == 0);
  CHECK(contains(rig.out, "sha256 " + sha256Hex(plan)));
  CHECK(contains(rig.out, "  \"kind\": \"srt\""));
}

TEST_CASE("runs stop stops a run, and refuses one that has ended") {
  Rig rig;
  auto ids = rig.backend.add("T");
  CHECK(rig.run({"runs", "stop", ids.run}) == 0);
  CHECK(rig.backend.memory().run(ids.run)->outcome == state::Outcome::Stopped);
  CHECK(rig.run({"runs", "stop", ids.run}) == 1);
  CHECK(contains(rig.err, "run_ended"));
}

// ---- the daemon

TEST_CASE("status says what is in force and what is lacking") {
  Rig rig;
  rig.backend.add("T");
  CHECK(rig.run({"status"}) == 0);
  for (auto part : {"pid 4711", "up 1 min 0 s", "~/.config/open-conduit/config.json", "1 live, 0 queued",
                    "user namespaces", "r-00000001", "seccomp"}) {
    CHECK(contains(rig.out, part));
  }
  CHECK(!contains(rig.out, "not in force"));
  rig.backend.configProblem = "config.json:3:1: error: version: 2 is not known";
  rig.backend.draining = true;
  CHECK(rig.run({"status"}) == 0);
  CHECK(contains(rig.out, "not in force"));
  CHECK(contains(rig.out, "version: 2 is not known"));
  CHECK(contains(rig.out, "draining"));
  auto document = rig.json({"status", "--json"});
  CHECK(document["pid"] == 4711);
  CHECK(document["uptime_seconds"] == 60);
  CHECK(document["config"]["problem"] == rig.backend.configProblem);
  CHECK(document["draining"] == true);
  CHECK(document["live_runs"][0]["id"] == "r-00000001");
  CHECK(document["instances"][0]["protections"]["landlock_abi"] == 7);
  CHECK(document["instances"][0]["protections"]["missing"].size() == 1);
  CHECK(document["lacks"] == Json({"user namespaces"}));
}

TEST_CASE("doctor exits with 1 when a check fails, and shows each fix") {
  Rig rig;
  CHECK(rig.run({"doctor"}) == 0);
  CHECK(rig.out == "ok    git  2.39.5\n");
  rig.backend.checks.push_back({"kernel", "warn", "Landlock ABI 3", "Linux 6.12"});
  CHECK(rig.run({"doctor"}) == 0);
  rig.backend.checks.push_back({"srt", "FAIL", "not there\nanywhere", "install it"});
  CHECK(rig.run({"doctor"}) == 1);
  CHECK(rig.out ==
        "ok    git     2.39.5\n"
        "warn  kernel  Landlock ABI 3\n"
        "              fix: Linux 6.12\n"
        "FAIL  srt     not there\n"
        "              anywhere\n"
        "              fix: install it\n");
  auto document = rig.json({"doctor", "--json"}, 1);
  CHECK(document["ok"] == false);
  CHECK(document["checks"][2] ==
        Json({{"name", "srt"}, {"level", "FAIL"}, {"what", "not there\nanywhere"}, {"fix", "install it"}}));
}

TEST_CASE("doctor without a daemon and with a broken config says what is wrong with the config") {
  Rig rig;
  rig.daemonRuns = false;
  rig.world.places.runtimeDir = "/nonexistent";
  auto document = rig.json({"--config", "/nonexistent/c.json", "doctor", "--json"}, 1);
  CHECK(document["ok"] == false);
  CHECK(document["checks"][0]["name"] == "config");
  CHECK(document["checks"][0]["level"] == "FAIL");
  CHECK(contains(document["checks"][0]["what"].get<std::string>(), "/nonexistent/c.json: error"));
  CHECK(document["checks"][1]["name"] == "daemon");
  CHECK(document["checks"][1]["level"] == "warn");
}

TEST_CASE("doctor examines the file that --config names, not what the daemon has read") {
  Rig rig;
  auto document = rig.json({"--config", "/nonexistent/c.json", "doctor", "--json"}, 1);
  REQUIRE(document["checks"].size() == 1);
  CHECK(contains(document["checks"][0]["what"].get<std::string>(), "/nonexistent/c.json: error"));
  CHECK(rig.run({"doctor"}) == 0);
}

TEST_CASE("drain waits for the live runs, or stops them") {
  Rig rig;
  auto ids = rig.backend.add("T");
  rig.whenItWaits([&]() { rig.backend.end(ids.run, state::Outcome::Succeeded, 0); });
  CHECK(rig.run({"drain"}) == 0);
  CHECK(contains(rig.err, "waiting for 1 run;"));
  auto another = rig.backend.add("T");
  CHECK(rig.json({"drain", "--stop", "--json"}) == Json({{"drained", true}}));
  CHECK(rig.backend.memory().run(another.run)->outcome == state::Outcome::Stopped);
}

TEST_CASE("reload says why a config is not taken") {
  Rig rig;
  CHECK(rig.run({"reload"}) == 0);
  rig.backend.reloadDiagnostics = "config.json:1:2: error: no JSON";
  CHECK(rig.run({"reload"}) == 1);
  CHECK(contains(rig.err, "config.json:1:2: error: no JSON"));
  auto document = rig.json({"reload", "--json"}, 1);
  CHECK(document["reloaded"] == false);
}

TEST_CASE("the daemon's program that is not there is named") {
  Rig rig;
  CHECK(rig.run({"daemon"}) == 1);
  CHECK(contains(rig.err, "/nonexistent/open-conduitd"));
}

// ---- the config

TEST_CASE("config check shows every diagnostic and needs no daemon") {
  Rig rig;
  rig.daemonRuns = false;
  char pattern[] = "/tmp/oc-config-XXXXXX";
  REQUIRE(mkdtemp(pattern) != nullptr);
  std::string directory = pattern;
  KJ_DEFER(removeTree(directory));
  auto good = directory + "/good.json", bad = directory + "/bad.json";
  writeFileAtomically(good, R"({"version": 1, "scopes": []})");
  writeFileAtomically(bad, R"({"version": 1, "scops": [], "settings": {"max_runs": "\u001b"}})");

  CHECK(rig.run({"config", "check", good}) == 0);
  CHECK(rig.out == good + ": ok, 0 scopes, 0 bindings\n");
  CHECK(rig.run({"--config", good, "config", "check"}) == 0);
  CHECK(rig.json({"config", "check", good, "--json"}) ==
        Json({{"file", good}, {"ok", true}, {"diagnostics", Json::array()}}));

  CHECK(rig.run({"config", "check", bad}) == 1);
  CHECK(contains(rig.out, bad + ":1:"));
  CHECK(contains(rig.out, "scops"));
  CHECK(contains(rig.out, "max_runs"));
  CHECK(!contains(rig.out, "\x1b"));
  auto document = rig.json({"config", "check", bad, "--json"}, 1);
  CHECK(document["ok"] == false);
  CHECK(document["diagnostics"].size() >= 2);
  CHECK(document["diagnostics"][0]["line"] == 1);

  CHECK(rig.run({"config", "check", directory + "/none.json"}) == 1);
  CHECK(contains(rig.out, "none.json"));
}

TEST_CASE("config schema is a JSON Schema") {
  Rig rig;
  CHECK(rig.json({"config", "schema"}).contains("$schema"));
}
