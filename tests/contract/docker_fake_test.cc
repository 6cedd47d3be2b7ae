// open-conduit-docker against an engine that is old, odd, hostile or gone. What a real one does is in tests/docker.
#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "tests/catch.h"
#include "tests/docker_instance.h"

namespace oc::test {
namespace {

const std::string id(64, 'a'), otherId(64, 'b');

// Answers calls by their method and path, without the query; "POST /containers/create" for any version of the API.
class FakeEngine final : public kj::TaskSet::ErrorHandler {
 public:
  using Answer = std::function<std::string(const std::string& query)>;

  explicit FakeEngine(kj::AsyncIoContext& io) : io(io), tasks(kj::heap<kj::TaskSet>(*this)) {
    on("GET /version", {{"Version", "28.5.2"}, {"ApiVersion", "1.51"}, {"Os", "linux"}, {"Arch", "amd64"}});
    on("GET /info",
       {{"ID", "x"}, {"PidsLimit", true}, {"MemoryLimit", true}, {"SwapLimit", true}, {"CpuCfsQuota", true}});
    on("GET /containers/json", Json::array());
    on("POST /containers/create", {{"Id", id}, {"Warnings", Json::array()}});
    raw("POST /containers/" + id + "/attach", attached);
    raw("POST /containers/" + id + "/wait", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    raw("POST /containers/" + id + "/start", "HTTP/1.1 204 No Content\r\n\r\n");
    raw("POST /containers/" + id + "/kill", "HTTP/1.1 204 No Content\r\n\r\n");
    raw("DELETE /containers/" + id, "HTTP/1.1 204 No Content\r\n\r\n");
  }

  static std::string http(const std::string& body, const std::string& status = "200 OK") {
    return fmt::format("HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
                       body.size(), body);
  }

  void on(const std::string& call, const Json& body, const std::string& status = "200 OK") {
    raw(call, http(body.dump(), status));
  }
  void raw(const std::string& call, const std::string& bytes) {
    answers[call] = [bytes](const std::string&) { return bytes; };
  }
  // Answers so, and closes.
  void cut(const std::string& call, const std::string& bytes) {
    raw(call, bytes);
    closing.push_back(call);
  }

  kj::AutoCloseFd connect() {
    auto pair = makeSocketPair();
    auto& link = *links.emplace_back(std::make_unique<Link>());
    link.stream = io.lowLevelProvider->wrapSocketFd(kj::mv(pair.first));
    tasks->add(serve(link));
    return kj::mv(pair.second);
  }
  void stop() {
    tasks = nullptr;
    links.clear();
  }

  bool wasAsked(const std::string& call) const {
    for (auto& one : asked) {
      if (one == call) return true;
    }
    return false;
  }

  static constexpr const char* attached =
      "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\nConnection: Upgrade\r\n"
      "Upgrade: tcp\r\n\r\n";

 private:
  struct Link {
    kj::Own<kj::AsyncIoStream> stream;
    std::string text;
    kj::byte buffer[65536];
  };

  kj::Promise<void> serve(Link& link) {
    return link.stream->tryRead(link.buffer, 1, sizeof(link.buffer)).then([this, &link](size_t n) -> kj::Promise<void> {
      if (n == 0) return kj::READY_NOW;
      link.text.append(reinterpret_cast<char*>(link.buffer), n);
      return answerWhole(link);
    });
  }

  kj::Promise<void> answerWhole(Link& link) {
    auto end = link.text.find("\r\n\r\n");
    if (end == std::string::npos) return serve(link);
    auto lengthAt = link.text.find("Content-Length: ");
    size_t length = lengthAt < end ? strtoul(link.text.c_str() + lengthAt + 16, nullptr, 10) : 0;
    if (link.text.size() < end + 4 + length) return serve(link);
    auto line = link.text.substr(0, link.text.find(" HTTP/"));
    link.text.erase(0, end + 4 + length);
    if (auto version = line.find("/v1.48"); version != std::string::npos) line.erase(version, 6);
    auto query = line.find('?') == std::string::npos ? "" : line.substr(line.find('?') + 1);
    auto call = line.substr(0, line.find('?'));
    asked.push_back(call);
    auto found = answers.find(call);
    auto bytes = kj::heap<std::string>(found == answers.end() ? http(R"({"message":"no such thing"})", "404 Not Found")
                                                              : found->second(query));
    bool closes = std::find(closing.begin(), closing.end(), call) != closing.end();
    auto written = link.stream->write(bytes->data(), bytes->size());
    return written.attach(kj::mv(bytes)).then([this, &link, closes]() -> kj::Promise<void> {
      if (!closes) return answerWhole(link);
      link.stream->shutdownWrite();
      return serve(link);
    });
  }

  void taskFailed(kj::Exception&&) override {}

  kj::AsyncIoContext& io;
  std::map<std::string, Answer> answers;
  std::vector<std::string> closing, asked;
  std::vector<std::unique_ptr<Link>> links;
  kj::Own<kj::TaskSet> tasks;
};

struct World {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FakeEngine engine{io};

  DockerInstance task() {
    return DockerInstance(io, {"task", "--connections", "1", "--owner", "ours", "--context", "odd one"}, 1,
                          [this]() { return engine.connect(); });
  }
  DockerInstance run() {
    return DockerInstance(io, {"run", "--owner", "ours", "--run", "r-1"}, 5, [this]() { return engine.connect(); });
  }

  Refusal askEngine() {
    auto instance = task();
    return read(instance.docker().engineRequest().send().wait(io.waitScope).getRefusal());
  }

  Refusal create(DockerInstance& instance) {
    auto request = instance.docker().createRequest();
    auto spec = request.initSpec();
    spec.setOwner("ours");
    spec.setRun("r-1");
    spec.setRole("agent");
    spec.setImage(toText("sha256:" + std::string(64, '1')));
    spec.initCommand(1).set(0, "/bin/true");
    spec.setDirectory("/");
    spec.setUser("1000:1000");
    return read(request.send().wait(io.waitScope).getRefusal());
  }
  Refusal createNew() {
    auto instance = run();
    return create(instance);
  }
};

}  // namespace

TEST_CASE("B18 an engine older than 28 is refused by its version, and what to do is said") {
  World world;
  world.engine.on("GET /version", {{"Version", "26.1.5"}, {"ApiVersion", "1.45"}, {"Os", "linux"}, {"Arch", "amd64"}});
  auto refusal = world.askEngine();
  CHECK(refusal.reason == "sandbox_unavailable");
  CHECK_THAT(refusal.what, hasText("26.1.5") && hasText("1.45"));
  CHECK_THAT(refusal.fix, hasText("Docker Engine 28"));
  CHECK(world.createNew().what == refusal.what);
  CHECK_FALSE(world.engine.wasAsked("POST /containers/create"));
}

TEST_CASE("an engine for other systems' containers is refused") {
  World world;
  world.engine.on("GET /version",
                  {{"Version", "28.0.0"}, {"ApiVersion", "1.48"}, {"Os", "windows"}, {"Arch", "amd64"}});
  CHECK_THAT(world.askEngine().what, hasText("windows"));
}

TEST_CASE("Docker Desktop, OrbStack, rootless engines and remapped users are told from what the engine says") {
  World world;
  world.engine.on("GET /info", {{"ID", "x"},
                                {"OperatingSystem", "Docker Desktop"},
                                {"SecurityOptions", {"name=seccomp,profile=builtin", "name=rootless", "name=userns"}},
                                {"PidsLimit", true},
                                {"MemoryLimit", true},
                                {"SwapLimit", false}});
  auto instance = world.task();
  auto answer = instance.docker().engineRequest().send().wait(world.io.waitScope);
  CHECK(read(answer.getRefusal()).what == "");
  auto engine = answer.getEngine();
  CHECK(toString(engine.getOperatingSystem()) == "Docker Desktop");
  CHECK(engine.getRootless());
  CHECK(engine.getRemapsUsers());
  CHECK(engine.getCanLimitPids());
  CHECK_FALSE(engine.getCanLimitMemory());
}

TEST_CASE("an answer that is large, deep, cut, of other types or no HTTP is a refusal, and the instance lives on") {
  World world;
  auto deep = std::string(100000, '[');
  auto large = "{\"Version\":\"" + std::string(5u << 20, 'x') + "\"}";
  std::vector<std::string> answers = {FakeEngine::http(deep),
                                      FakeEngine::http(large),
                                      FakeEngine::http("{\"ApiVersion\":5}"),
                                      FakeEngine::http("null"),
                                      FakeEngine::http("{\"ApiVersion\":\"1.\"}"),
                                      FakeEngine::http("{\"ApiVersion\":\"999999999999.1\"}"),
                                      FakeEngine::http(""),
                                      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"Version\":",
                                      "garbage\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nX: " + std::string(300000, 'x') + "\r\n\r\n{}",
                                      "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
                                      ""};
  for (auto& bytes : answers) {
    INFO(bytes.substr(0, 60));
    world.engine.cut("GET /version", bytes);
    auto instance = world.task();
    auto refusal = read(instance.docker().engineRequest().send().wait(world.io.waitScope).getRefusal());
    CHECK(refusal.reason == "sandbox_unavailable");
    CHECK(refusal.what.size() < 1500);
    CHECK(instance.docker().protectionsRequest().send().wait(world.io.waitScope).getProtections().getSeccomp());
  }
}

TEST_CASE("the engine's words are made printable and cut, and common troubles have their fix") {
  World world;
  world.engine.on("POST /containers/create",
                  {{"message", "write /x: no space left on device \x1b]52;c;eA==\x07" + std::string(9000, 'y')}},
                  "500 Internal Server Error");
  auto refusal = world.createNew();
  CHECK(refusal.reason == "sandbox_unavailable");
  CHECK_THAT(refusal.fix, hasText("docker system df"));
  CHECK(refusal.what.find('\x1b') == std::string::npos);
  CHECK(refusal.what.size() < 1000);
  world.engine.on("POST /containers/create", {{"message", "bind source path does not exist: /p"}}, "400 Bad Request");
  CHECK(world.createNew().reason == "sandbox_denied");
}

TEST_CASE("B4 a limit that the engine has its own bounds for is refused with what to change") {
  World world;
  struct Row {
    std::string message, fix;
  };
  for (auto& row : {Row{"range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available", "limits.cpus"},
                    Row{"Minimum memory limit allowed is 6MB", "limits.memory"},
                    Row{"all predefined address pools have been fully subnetted", "network prune"},
                    Row{"exec /open-conduit/bin/open-conduit-toolbelt: exec format error", "architecture"}}) {
    INFO(row.message);
    world.engine.on("POST /containers/create", {{"message", row.message}}, "400 Bad Request");
    auto refusal = world.createNew();
    CHECK(refusal.reason == "sandbox_unavailable");
    CHECK_THAT(refusal.what, hasText(row.message));
    CHECK_THAT(refusal.fix, hasText(row.fix));
  }
}

TEST_CASE("B1 an image that can't be had is refused with what to do about it, which is never to pull an id") {
  World world;
  auto pull = [&world](const std::string& reference) {
    auto instance = world.task();
    auto request = instance.docker().pullRequest();
    request.setReference(toText(reference));
    return read(request.send().wait(world.io.waitScope).getRefusal());
  };
  auto named = "localhost:5000/agent@sha256:" + id, byId = "sha256:" + id;
  auto missing = pull(byId);
  CHECK(missing.reason == "sandbox_unavailable");
  CHECK_THAT(missing.what, hasText(byId) && hasText("pulled from nowhere"));
  CHECK_THAT(missing.fix, hasText("docker --context 'odd one' image ls"));
  CHECK(missing.fix.find(" pull") == std::string::npos);
  CHECK_FALSE(world.engine.wasAsked("POST /images/create"));
  struct Row {
    std::string error, fix;
  };
  for (auto& row : {Row{"manifest unknown", "docker --context 'odd one' pull"},
                    Row{"failed to register layer: write /x: no space left on device", "system df"},
                    Row{"no matching manifest for linux/amd64 in the manifest list entries", "architecture"}}) {
    INFO(row.error);
    world.engine.on("POST /images/create", {{"error", row.error}});
    auto refusal = pull(named);
    CHECK(refusal.reason == "sandbox_unavailable");
    CHECK_THAT(refusal.what, hasText(named) && hasText(row.error));
    CHECK_THAT(refusal.fix, hasText(row.fix));
    world.engine.on("POST /images/create", {{"message", row.error}}, "500 Internal Server Error");
    CHECK_THAT(pull(named).fix, hasText(row.fix));
  }
}

TEST_CASE("B4 a limit that the engine would leave out is a refusal, not a warning") {
  World world;
  world.engine.on("POST /containers/create",
                  {{"Id", id}, {"Warnings", {"Your kernel does not support pids limit. Limitation discarded."}}});
  auto refusal = world.createNew();
  CHECK(refusal.reason == "sandbox_unavailable");
  CHECK_THAT(refusal.what, hasText("Limitation discarded"));
}

TEST_CASE("B4 an engine that can keep no limits, and takes them without a word, is refused") {
  World world;
  world.engine.on("GET /info", {{"ID", "x"}, {"PidsLimit", false}, {"MemoryLimit", true}, {"SwapLimit", true}});
  auto refusal = world.createNew();
  CHECK(refusal.reason == "sandbox_unavailable");
  CHECK_THAT(refusal.what, hasText("processes"));
  CHECK_THAT(refusal.fix, hasText("cgroup v2"));
  CHECK_FALSE(world.engine.wasAsked("POST /containers/create"));
}

TEST_CASE("an id that is none leads to no path of the engine's") {
  for (auto bad : {std::string("../../../volumes/x"), std::string(64, '/'), std::string()}) {
    World world;
    world.engine.on("POST /containers/create", {{"Id", bad}});
    CHECK_THAT(world.createNew().what, hasText("container's id"));
  }
}

TEST_CASE("what an engine lists beside what was asked for is not touched") {
  World world;
  auto labels = [](const char* owner) { return Json{{"io.openconduit.owner", owner}, {"io.openconduit.run", "r-1"}}; };
  auto own = Json{{"Id", id}, {"Names", {"/a"}}, {"State", "running"}, {"Labels", labels("ours")}};
  auto strange = Json{{"Id", otherId}, {"Names", {"/b"}}, {"State", "running"}, {"Labels", labels("theirs")}};
  world.engine.on("GET /containers/json", Json::array({strange, own, 5, nullptr, Json::object()}));
  world.engine.on("GET /volumes", {{"Volumes", Json::array({{{"Name", "x"}, {"Labels", labels("theirs")}}})}});
  auto instance = world.task();
  auto request = instance.docker().sweepRequest();
  request.setOwner("ours");
  auto answer = request.send().wait(world.io.waitScope);
  CHECK(answer.getRemoved() == 1);
  CHECK(world.engine.wasAsked("DELETE /containers/" + id));
  CHECK_FALSE(world.engine.wasAsked("DELETE /containers/" + otherId));
  CHECK_FALSE(world.engine.wasAsked("DELETE /volumes/x"));
}

TEST_CASE("not one byte behind the engine's answer to an attach is read by the instance") {
  World world;
  world.engine.raw("POST /containers/" + id + "/attach", std::string(FakeEngine::attached) + "the agent's first words");
  auto instance = world.run();
  REQUIRE(world.create(instance).what == "");
  char buffer[100];
  auto n = ::read(instance.agentFd.get(), buffer, sizeof(buffer));
  CHECK(std::string(buffer, n > 0 ? n : 0) == "the agent's first words");
}

TEST_CASE("an attach that the engine does not switch over for is a refusal") {
  for (auto& bytes :
       {FakeEngine::http(R"({"message":"container is gone"})", "404 Not Found"), std::string("HTTP/1.1 200 OK\r\n\r\n"),
        std::string("HTTP/1.1 101") + std::string(9000, 'x'), std::string("101\r\n\r\n"), std::string()}) {
    World world;
    world.engine.cut("POST /containers/" + id + "/attach", bytes);
    INFO(bytes.substr(0, 40));
    CHECK(world.createNew().reason == "sandbox_unavailable");
    CHECK_FALSE(world.engine.wasAsked("POST /containers/" + id + "/start"));
  }
}

TEST_CASE("an engine that stops in the middle of a run: the agent's end is unknown, and why is told") {
  World world;
  auto instance = world.run();
  REQUIRE(world.create(instance).what == "");
  REQUIRE(read(instance.docker().startRequest().send().wait(world.io.waitScope).getRefusal()).what == "");
  auto waiting = instance.shim().waitRequest().send();
  world.engine.stop();
  auto answer = waiting.wait(world.io.waitScope);
  auto status = answer.getStatus();
  REQUIRE(status.isUnknown());
  CHECK_THAT(toString(status.getUnknown()), hasText("engine went away"));
  instance.process = nullptr;
  CHECK(instance.endsByItself());
}

TEST_CASE("G3 the instance is locked down, and a job that makes no sense is none") {
  World world;
  auto instance = world.task();
  auto answer = instance.docker().protectionsRequest().send().wait(world.io.waitScope);
  auto protections = answer.getProtections();
  CHECK(protections.getNoNewPrivs());
  CHECK(protections.getNotDumpable());
  CHECK(protections.getSeccomp());
  CHECK(protections.getLandlockFiles());
  for (auto& job : std::vector<std::vector<std::string>>{{"task"},
                                                         {"task", "--connections", "9"},
                                                         {"run", "--run", "r-1"},
                                                         {"task", "--connections", "1", "--owner", "../x"}}) {
    DockerInstance bad(world.io, job, 1, [&world]() { return world.engine.connect(); });
    CHECK_FALSE(bad.handshake.ready);
    CHECK(bad.handshake.failure != "");
  }
}

}  // namespace oc::test
