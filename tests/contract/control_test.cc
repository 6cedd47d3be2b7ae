// The control socket's server over an in-process pipe, before a backend that keeps its state in memory; and its
// listening side over a real socket.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "daemon/control/server.h"
#include "proto/convert.h"
#include "proto/rpc.h"
#include "tests/catch.h"
#include "tests/fakes/memory_backend.h"

using namespace oc;

namespace {

// One event loop with a client and a server, and the time that it thinks it is.
struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  SecretBytes token = SecretBytes::random(32);
  fakes::MemoryBackend backend;
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};

  struct Line {
    kj::Own<Connection> server, client;
    proto::Front::Client front() { return client->bootstrapOfPeer().castAs<proto::Front>(); }
  };

  Line dial() {
    auto pipe = io.provider->newTwoWayPipe();
    RpcLimits limits;
    limits.messageWords = (64u << 20) / 8;
    return {kj::heap<Connection>(kj::mv(pipe.ends[0]), capnp::rpc::twoparty::Side::SERVER,
                                 control::makeFront(timer, token, backend), limits, "client"),
            kj::heap<Connection>(kj::mv(pipe.ends[1]), capnp::rpc::twoparty::Side::CLIENT, nullptr, limits, "server")};
  }

  auto tryLogin(proto::Front::Client front, std::string_view offered, uint32_t version = proto::PROTOCOL_VERSION) {
    auto request = front.loginRequest();
    request.setToken(toData(offered));
    request.setVersion(version);
    return request.send();
  }

  proto::Control::Client login(Line& line) {
    return tryLogin(line.front(), token.view()).wait(io.waitScope).getControl();
  }

  // Lets everything that can happen now happen.
  void settle() {
    for (int i = 0; i < 20; ++i) {
      io.waitScope.poll();
      kj::evalLater([]() {}).wait(io.waitScope);
    }
  }
};

std::string failureOf(kj::Promise<void> promise, kj::WaitScope& scope) {
  std::string text;
  promise.catch_([&text](kj::Exception&& exception) { text = describe(exception); }).wait(scope);
  return text;
}

template <typename Results>
kj::Promise<void> ignoring(capnp::RemotePromise<Results> promise) {
  return promise.then([](auto&&) {});
}

auto newWork(proto::Control::Client control, const std::string& title, const std::string& body = "",
             const std::string& binding = "shell") {
  auto call = control.newWorkRequest();
  auto request = call.initRequest();
  request.setScope("demo");
  request.setBinding(toText(binding));
  request.setTitle(toText(title));
  request.setBody(toData(body));
  return call.send();
}

}  // namespace

TEST_CASE("the operator token opens the daemon") {
  World world;
  auto line = world.dial();
  auto answer = world.tryLogin(line.front(), world.token.view()).wait(world.io.waitScope);
  CHECK(toString(answer.getDaemonVersion()) == OPEN_CONDUIT_VERSION);
  auto status = answer.getControl().statusRequest().send().wait(world.io.waitScope);
  CHECK(status.getStatus().getPid() == 4711);
}

TEST_CASE("a wrong token opens nothing, and is told so after a second") {
  World world;
  auto wrong = GENERATE(std::string(), std::string(32, 'x'), std::string(4096, 'x'));
  auto line = world.dial();
  bool answered = false;
  std::string text;
  auto login = ignoring(world.tryLogin(line.front(), wrong))
                   .catch_([&](kj::Exception&& exception) { text = describe(exception); })
                   .then([&]() { answered = true; })
                   .eagerlyEvaluate(nullptr);
  world.settle();
  CHECK(!answered);
  world.timer.advanceTo(kj::origin<kj::TimePoint>() + 999 * kj::MILLISECONDS);
  world.settle();
  CHECK(!answered);
  world.timer.advanceTo(kj::origin<kj::TimePoint>() + 1001 * kj::MILLISECONDS);
  login.wait(world.io.waitScope);
  CHECK(text == "this is not the daemon's operator token");
  // The same connection with the right one.
  CHECK_NOTHROW(world.login(line));
}

TEST_CASE("a connection that guessed three times is not let in any more") {
  World world;
  auto line = world.dial();
  for (int i = 0; i < 3; ++i) {
    auto login =
        ignoring(world.tryLogin(line.front(), "guess")).catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
    world.settle();
    world.timer.advanceTo(world.timer.now() + 2 * kj::SECONDS);
    login.wait(world.io.waitScope);
  }
  std::string text;
  auto login = ignoring(world.tryLogin(line.front(), world.token.view()))
                   .catch_([&text](kj::Exception&& exception) { text = describe(exception); })
                   .eagerlyEvaluate(nullptr);
  world.settle();
  world.timer.advanceTo(world.timer.now() + 2 * kj::SECONDS);
  login.wait(world.io.waitScope);
  CHECK(text == "this is not the daemon's operator token");
  auto another = world.dial();
  CHECK_NOTHROW(world.login(another));
}

TEST_CASE("a client of another protocol version is told both versions") {
  World world;
  auto line = world.dial();
  auto text = failureOf(ignoring(world.tryLogin(line.front(), world.token.view(), 99)), world.io.waitScope);
  CHECK(text.find(OPEN_CONDUIT_VERSION) != std::string::npos);
  CHECK(text.find("not 99") != std::string::npos);
}

TEST_CASE("Work is made, listed and shown, with its first run") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  auto made = newWork(control, "Add a header", "please").wait(world.io.waitScope);
  REQUIRE(toString(made.getRefusal().getReason()).empty());
  CHECK(world.backend.lastBody == "please");
  newWork(control, "Another").wait(world.io.waitScope);

  auto list = control.listWorkRequest().send().wait(world.io.waitScope);
  REQUIRE(list.getWork().size() == 2);
  CHECK(toString(list.getWork()[0].getTitle()) == "Another");
  CHECK(toString(list.getWork()[1].getRuns()[0]) == toString(made.getRun()));

  auto get = control.getWorkRequest();
  get.setId(made.getId());
  auto shown = get.send().wait(world.io.waitScope);
  CHECK(toString(shown.getWork().getTitle()) == "Add a header");
  CHECK(toString(shown.getWork().getWorkspace()) ==
        "/data/open-conduit/works/" + toString(made.getId()) + "/workspace");

  auto runs = control.listRunsRequest();
  runs.setWork(made.getId());
  auto listed = runs.send().wait(world.io.waitScope);
  REQUIRE(listed.getRuns().size() == 1);
  CHECK(toString(listed.getRuns()[0].getState()) == "queued");
  CHECK(toString(listed.getRuns()[0].getOutcome()).empty());
  CHECK(toString(listed.getRuns()[0].getTitle()) == "Add a header");
  CHECK(control.listRunsRequest().send().wait(world.io.waitScope).getRuns().size() == 2);
}

TEST_CASE("a body of 16 MiB is taken, one byte more is refused") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  constexpr size_t most = 16u << 20;
  auto taken = newWork(control, "t", std::string(most, 'b')).wait(world.io.waitScope);
  CHECK(toString(taken.getRefusal().getReason()).empty());
  CHECK(world.backend.lastBody.size() == most);
  auto refused = newWork(control, "t", std::string(most + 1, 'b')).wait(world.io.waitScope);
  CHECK(toString(refused.getRefusal().getReason()) == "request_invalid");
  CHECK(toString(refused.getRefusal().getWhat()).find("16 MiB") != std::string::npos);
}

TEST_CASE("a request that cannot be shown or stored is refused and makes nothing") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  auto title = GENERATE(std::string(1025, 't'), std::string("a\nb"), std::string("a\x1b[31mb"), std::string("a\x7f"),
                        std::string("a\xc2\x9b"), std::string("a\xff"));
  auto answer = newWork(control, title).wait(world.io.waitScope);
  CHECK(toString(answer.getRefusal().getReason()) == "request_invalid");
  auto what = toString(answer.getRefusal().getWhat());
  CHECK(what.find('\x1b') == std::string::npos);
  CHECK(!what.empty());
  CHECK(world.backend.memory().allWork().empty());
}

TEST_CASE("a title of 1 KiB in any language is taken") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  std::string title;
  while (title.size() + 3 <= 1024) title += "語";
  CHECK(toString(newWork(control, title).wait(world.io.waitScope).getRefusal().getReason()).empty());
}

TEST_CASE("a binding that is not in the config is the backend's to refuse") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  auto unknown = newWork(control, "t", "", "nothing").wait(world.io.waitScope);
  CHECK(toString(unknown.getRefusal().getWhat()) == "there is no binding demo/nothing");
  auto none = newWork(control, "t", "", "").wait(world.io.waitScope);
  CHECK(toString(none.getRefusal().getReason()) == "request_invalid");
}

TEST_CASE("an id may be cut to a beginning that only one has") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  state::WorkRow work;
  work.id = "w-abcd2345";
  state::RunRow run;
  run.work = work.id;
  run.id = "r-abcd2345";
  world.backend.memory().addWorkWithRun(work, run);
  run.id = "r-abxy6789";
  world.backend.memory().addRun(run);

  auto get = [&](const char* id) {
    auto request = control.getRunRequest();
    request.setId(id);
    return request.send().wait(world.io.waitScope);
  };
  CHECK(toString(get("r-abx").getRun().getId()) == "r-abxy6789");
  CHECK(toString(get("r-abcd2345").getRun().getId()) == "r-abcd2345");
  auto ambiguous = get("r-ab");
  CHECK(toString(ambiguous.getRefusal().getReason()) == "id_ambiguous");
  CHECK(toString(ambiguous.getRefusal().getWhat()).find("r-abxy6789") != std::string::npos);
  CHECK(toString(get("r-").getRefusal().getReason()) == "id_ambiguous");
  CHECK(toString(get("").getRefusal().getReason()) == "run_unknown");
  CHECK(toString(get("r-zzz").getRefusal().getReason()) == "run_unknown");
  auto mixedUp = get("w-abcd2345");
  CHECK(toString(mixedUp.getRefusal().getFix()) == "open-conduit runs list --work w-abcd2345");

  auto runsOfNone = control.listRunsRequest();
  runsOfNone.setWork("w-nothere");
  CHECK(toString(runsOfNone.send().wait(world.io.waitScope).getRefusal().getReason()) == "work_unknown");

  auto getWork = control.getWorkRequest();
  getWork.setId("w-abc");
  CHECK(toString(getWork.send().wait(world.io.waitScope).getWork().getId()) == "w-abcd2345");
}

TEST_CASE("waiting for a run answers when it has ended, with what came of it") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  auto ids = world.backend.add("t");
  auto request = control.waitRunRequest();
  request.setId(toText(ids.run));
  bool answered = false;
  auto waiting = request.send()
                     .then([&answered](auto&& answer) {
                       answered = true;
                       return kj::mv(answer);
                     })
                     .eagerlyEvaluate(nullptr);
  world.settle();
  CHECK(!answered);
  world.backend.start(ids.run);
  world.backend.end(ids.run, state::Outcome::Refused, -1, {"sandbox_denied", "no", "grant it"});
  auto answer = waiting.wait(world.io.waitScope);
  CHECK(toString(answer.getRun().getOutcome()) == "refused");
  CHECK(toString(answer.getRun().getReason()) == "sandbox_denied");
  CHECK(toString(answer.getRun().getFix()) == "grant it");
}

TEST_CASE("when a connection goes away, what it waited for is given up") {
  World world;
  auto ids = world.backend.add("t");
  auto line = world.dial();
  auto other = world.dial();
  auto start = [&](World::Line& on) {
    auto control = world.login(on);
    auto wait = control.waitRunRequest();
    wait.setId(toText(ids.run));
    auto log = control.readLogRequest();
    log.setId(toText(ids.run));
    log.setFollow(true);
    return kj::joinPromises(
               kj::arr(ignoring(wait.send()), ignoring(log.send()), ignoring(control.drainRequest().send())))
        .catch_([](kj::Exception&&) {})
        .eagerlyEvaluate(nullptr);
  };
  auto waits = start(line);
  auto otherWaits = start(other);
  world.settle();
  REQUIRE(world.backend.waiting == 6);
  line.client = nullptr;
  world.settle();
  line.server->onDisconnect().wait(world.io.waitScope);
  line.server = nullptr;
  world.settle();
  CHECK(world.backend.waiting == 3);
  world.backend.end(ids.run, state::Outcome::Succeeded, 0);
  otherWaits.wait(world.io.waitScope);
  CHECK(world.backend.waiting == 0);
}

namespace {

auto attach(proto::Control::Client control, const std::string& kind = "xterm-256color") {
  auto request = control.attachWorkRequest();
  request.setId("w-00000001");
  auto terminal = request.initTerminal();
  terminal.setColumns(100);
  terminal.setRows(30);
  terminal.setKind(toText(kind));
  terminal.setColours("true color");
  return request.send();
}

}  // namespace

TEST_CASE("B17 an attachment ends when its session is dropped") {
  World world;
  world.backend.add("one");
  auto line = world.dial();
  auto control = world.login(line);
  {
    auto answer = attach(control).wait(world.io.waitScope);
    CHECK(answer.getRefusal().getReason().size() == 0);
    CHECK(world.backend.attached == 1);
    CHECK(world.backend.terminalFacts.size.columns == 100);
    CHECK(world.backend.terminalFacts.size.rows == 30);
    CHECK(world.backend.terminalFacts.kind == "xterm-256color");
    // Not a proper word, so it does not reach an environment.
    CHECK(world.backend.terminalFacts.colours == "");
    auto session = answer.getSession();
    auto resize = session.resizeRequest();
    resize.setColumns(77);
    resize.setRows(22);
    resize.send().ignoreResult().wait(world.io.waitScope);
    CHECK(world.backend.size.columns == 77);
  }
  world.settle();
  CHECK(world.backend.attached == 0);
}

TEST_CASE("B17 an attachment ends with the connection of a client that waits for it") {
  World world;
  world.backend.add("one");
  auto line = world.dial();
  auto control = world.login(line);
  auto session = attach(control).wait(world.io.waitScope).getSession();
  auto waiting = ignoring(session.waitRequest().send()).catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
  world.settle();
  CHECK(world.backend.attached == 1);
  CHECK(world.backend.waiting == 1);
  line.client = nullptr;
  world.settle();
  line.server->onDisconnect().wait(world.io.waitScope);
  line.server = nullptr;
  world.settle();
  CHECK(world.backend.attached == 0);
  CHECK(world.backend.waiting == 0);
}

TEST_CASE("C8 F5 an attachment that is refused says why and holds nothing") {
  World world;
  world.backend.add("one");
  world.backend.sandboxed = true;
  auto line = world.dial();
  auto answer = attach(world.login(line), "x; rm -rf").wait(world.io.waitScope);
  CHECK(toString(answer.getRefusal().getReason()) == "attach_sandboxed");
  CHECK(world.backend.attached == 0);
}

TEST_CASE("a connection waits for at most 64 things at a time") {
  World world;
  auto ids = world.backend.add("t");
  auto line = world.dial();
  auto control = world.login(line);
  auto request = [&]() {
    auto wait = control.waitRunRequest();
    wait.setId(toText(ids.run));
    return ignoring(wait.send());
  };
  std::vector<kj::Promise<void>> waits;
  for (int i = 0; i < 64; ++i) waits.push_back(request().eagerlyEvaluate(nullptr));
  world.settle();
  CHECK(failureOf(request(), world.io.waitScope).find("64") != std::string::npos);
  world.backend.end(ids.run, state::Outcome::Succeeded, 0);
  for (auto& wait : waits) wait.wait(world.io.waitScope);
  CHECK(failureOf(request(), world.io.waitScope).empty());
}

TEST_CASE("a log is read piece by piece, as it was written, to its end") {
  World world;
  auto ids = world.backend.add("t");
  std::string written;
  for (int i = 0; i < 100'000; ++i) written += static_cast<char>(i * 7), written += "\x1b[2J";
  world.backend.print(ids.run, written);
  world.backend.end(ids.run, state::Outcome::Succeeded, 0);
  auto line = world.dial();
  auto control = world.login(line);
  std::string read;
  uint64_t offset = 0;
  for (bool end = false; !end;) {
    auto request = control.readLogRequest();
    request.setId(toText(ids.run));
    request.setOffset(offset);
    auto piece = request.send().wait(world.io.waitScope);
    CHECK(piece.getBytes().size() <= 256u << 10);
    read += toString(piece.getBytes());
    offset = piece.getNext();
    end = piece.getEnd();
  }
  CHECK(read == written);
}

TEST_CASE("the pinned plan comes as it was pinned") {
  World world;
  auto ids = world.backend.add("t");
  auto line = world.dial();
  auto control = world.login(line);
  auto request = control.getPolicyRequest();
  request.setId(toText(ids.run));
  CHECK(toString(request.send().wait(world.io.waitScope).getRefusal().getReason()) == "plan_unknown");
  world.backend.memory().pinPlan(ids.run, R"({"a":1})", sha256Hex(R"({"a":1})"));
  auto again = control.getPolicyRequest();
  again.setId(toText(ids.run));
  auto answer = again.send().wait(world.io.waitScope);
  CHECK(toString(answer.getPlan()) == R"({"a":1})");
  CHECK(toString(answer.getSha256()) == sha256Hex(R"({"a":1})"));
}

TEST_CASE("Work with a live run is not finished, but may be cancelled") {
  World world;
  auto ids = world.backend.add("t");
  auto line = world.dial();
  auto control = world.login(line);
  auto finish = control.finishWorkRequest();
  finish.setId(toText(ids.work));
  CHECK(toString(finish.send().wait(world.io.waitScope).getRefusal().getReason()) == "work_busy");
  auto cancel = control.cancelWorkRequest();
  cancel.setId(toText(ids.work));
  CHECK(toString(cancel.send().wait(world.io.waitScope).getRefusal().getReason()).empty());
  auto get = control.getWorkRequest();
  get.setId(toText(ids.work));
  auto shown = get.send().wait(world.io.waitScope);
  CHECK(toString(shown.getWork().getState()) == "cancelled");
  CHECK(toString(shown.getWork().getWorkspace()).empty());
  CHECK(toString(shown.getWork().getWarnings()[0]) == ".envrc");

  auto stop = control.stopRunRequest();
  stop.setId(toText(ids.run));
  CHECK(toString(stop.send().wait(world.io.waitScope).getRefusal().getReason()) == "run_ended");
}

TEST_CASE("what fails inside the daemon leaves it as one printable line") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  world.backend.memory().failing = true;
  auto request = control.getRunRequest();
  request.setId("r-1");
  auto text = failureOf(ignoring(request.send()), world.io.waitScope);
  CHECK(text.find("the disk\\x1b[31m is full") != std::string::npos);
  CHECK(text.find(".cc") == std::string::npos);
  CHECK(text.find(".h:") == std::string::npos);
  world.backend.memory().failing = false;
  CHECK(control.statusRequest().send().wait(world.io.waitScope).getStatus().getPid() == 4711);
}

TEST_CASE("a list has the newest 10,000 and no more") {
  World world;
  for (int i = 0; i < 10'050; ++i) world.backend.add("t");
  auto line = world.dial();
  auto control = world.login(line);
  auto works = control.listWorkRequest().send().wait(world.io.waitScope);
  REQUIRE(works.getWork().size() == 10'000);
  CHECK(toString(works.getWork()[0].getId()) == "w-00010050");
  CHECK(works.getOlder() == 50);
  auto runs = control.listRunsRequest().send().wait(world.io.waitScope);
  CHECK(runs.getRuns().size() == 10'000);
  CHECK(runs.getOlder() == 50);
  auto few = control.listRunsRequest();
  few.setLimit(3);
  auto three = few.send().wait(world.io.waitScope);
  REQUIRE(three.getRuns().size() == 3);
  CHECK(three.getOlder() == 10'047);
  CHECK(toString(three.getRuns()[2].getId()) == "r-00010048");
}

TEST_CASE("a list of long rows stays within one message") {
  World world;
  for (int i = 0; i < 9'000; ++i) {
    auto ids = world.backend.add(std::string(1024, 't'));
    world.backend.end(ids.run, state::Outcome::Refused, -1, {"r", std::string(4096, 'm'), std::string(4096, 'f')});
  }
  auto line = world.dial();
  auto control = world.login(line);
  auto runs = control.listRunsRequest().send().wait(world.io.waitScope);
  CHECK(runs.getRuns().size() > 1'000);
  CHECK(runs.getRuns().size() < 9'000);
  CHECK(toString(runs.getRuns()[0].getId()) == "r-00009000");
}

TEST_CASE("drain, reload and doctor are the backend's") {
  World world;
  auto line = world.dial();
  auto control = world.login(line);
  auto ids = world.backend.add("t");
  auto drain = control.drainRequest();
  drain.setStop(true);
  drain.send().wait(world.io.waitScope);
  CHECK(world.backend.draining);
  CHECK(world.backend.memory().run(ids.run)->outcome == state::Outcome::Stopped);
  CHECK(toString(control.reloadRequest().send().wait(world.io.waitScope).getDiagnostics()).empty());
  world.backend.reloadDiagnostics = "config.json:1:1: error";
  CHECK(toString(control.reloadRequest().send().wait(world.io.waitScope).getDiagnostics()) == "config.json:1:1: error");
  auto checks = control.doctorRequest().send().wait(world.io.waitScope);
  CHECK(toString(checks.getChecks()[0].getName()) == "git");
}

// ---- the listening side

namespace {

struct Listening {
  std::string directory;
  std::string path;
  sockaddr_un address = {};
  World world;
  kj::Promise<void> serving = nullptr;

  Listening() {
    char pattern[] = "/tmp/oc-control-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    directory = pattern;
    path = directory + "/control.sock";
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(fd >= 0);
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(listen(fd, 128) == 0);
    auto receiver = world.io.lowLevelProvider->wrapListenSocketFd(kj::AutoCloseFd(fd));
    serving = control::serve(world.io, kj::mv(receiver), world.token, world.backend).eagerlyEvaluate(nullptr);
  }
  ~Listening() { removeTree(directory); }

  kj::Own<Connection> dial() {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    kj::AutoCloseFd owned(fd);
    REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    auto stream = world.io.lowLevelProvider->wrapSocketFd(kj::mv(owned));
    return kj::heap<Connection>(kj::mv(stream), capnp::rpc::twoparty::Side::CLIENT, nullptr, RpcLimits{}, "server");
  }
  std::string login(Connection& connection) {
    return failureOf(ignoring(world.tryLogin(connection.bootstrapOfPeer().castAs<proto::Front>(), world.token.view())),
                     world.io.waitScope);
  }
};

}  // namespace

TEST_CASE("the socket serves 64 connections, closes the next, and has room again when one goes") {
  Listening here;
  std::vector<kj::Own<Connection>> connections;
  for (int i = 0; i < 64; ++i) {
    connections.push_back(here.dial());
    REQUIRE(here.login(*connections.back()).empty());
  }
  auto late = here.dial();
  CHECK(!here.login(*late).empty());
  connections.pop_back();
  here.world.settle();
  std::string failure = "not tried";
  for (int i = 0; i < 50 && !failure.empty(); ++i) {
    auto next = here.dial();
    failure = here.login(*next);
  }
  CHECK(failure.empty());
}

TEST_CASE("what is no RPC ends its own connection and no other") {
  Listening here;
  auto good = here.dial();
  REQUIRE(here.login(*good).empty());
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  kj::AutoCloseFd bad(fd);
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&here.address), sizeof(here.address)) == 0);
  auto stream = here.world.io.lowLevelProvider->wrapSocketFd(kj::mv(bad));
  std::string garbage(4096, '\xff');
  stream->write(garbage.data(), garbage.size()).wait(here.world.io.waitScope);
  char byte;
  CHECK(failureOf(stream->tryRead(&byte, 1, 1).then([](size_t) {}), here.world.io.waitScope).size() < 1024);
  CHECK(here.login(*good).empty());
}

TEST_CASE("a client that dies while it waits leaves nothing waiting") {
  Listening here;
  auto ids = here.world.backend.add("t");
  auto connection = here.dial();
  auto control = here.world.tryLogin(connection->bootstrapOfPeer().castAs<proto::Front>(), here.world.token.view())
                     .wait(here.world.io.waitScope)
                     .getControl();
  auto request = control.waitRunRequest();
  request.setId(toText(ids.run));
  auto waiting = ignoring(request.send()).catch_([](kj::Exception&&) {}).eagerlyEvaluate(nullptr);
  control.statusRequest().send().wait(here.world.io.waitScope);
  REQUIRE(here.world.backend.waiting == 1);
  connection = nullptr;
  for (int i = 0; i < 100 && here.world.backend.waiting > 0; ++i) {
    here.world.io.provider->getTimer().afterDelay(10 * kj::MILLISECONDS).wait(here.world.io.waitScope);
  }
  CHECK(here.world.backend.waiting == 0);
}
