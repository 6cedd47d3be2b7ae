// What the shim makes of Claude Code's lines.
#include "providers/run/executors/claude_code.h"

#include <fcntl.h>
#include <kj/async-io.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "tests/catch.h"

namespace oc::run {
namespace {

const std::string session = "5e83d75e-e29b-4aff-ab00-a38525bcdc6b";

class Host final : public ExecutorHost {
 public:
  void write(std::string bytes) override { written += bytes; }
  void closeInput() override { closed = true; }
  size_t unwritten() const override { return stuck; }
  void tellNote(const std::string& text) override { notes.push_back(text); }
  void tellSession(const std::string& id) override { sessions.push_back(id); }
  void tellUsage(const AgentUsage& used) override { usage = used; }
  void expectEnd(kj::Duration) override { ending = true; }
  void expectNoEnd() override { ending = false; }

  std::string written;
  bool closed = false, ending = false;
  size_t stuck = 0;
  std::vector<std::string> notes, sessions;
  AgentUsage usage;
};

struct World {
  explicit World(const std::string& config = "{}") : executor(config, host) { executor.start("Do it"); }

  void out(const std::string& bytes) { feed(Executor::Stream::Output, bytes); }
  void err(const std::string& bytes) { feed(Executor::Stream::Errors, bytes); }
  void feed(Executor::Stream stream, const std::string& bytes) {
    executor.received(stream, kj::arrayPtr(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()), log);
  }
  void init(const std::string& servers = "[]") {
    out(R"({"type":"system","subtype":"init","session_id":")" + session + R"(","mcp_servers":)" + servers + "}\n");
  }
  void result(const std::string& more) { out("{" + more + R"(,"type":"result","session_id":")" + session + "\"}\n"); }
  void replay(size_t line) {
    auto message = parseJson(lines().at(line));
    out(R"({"type":"user","message":{},"uuid":")" + message.at("uuid").get<std::string>() + "\",\"isReplay\":true}\n");
  }
  Verdict exited(int code) { return executor.finished({true, false, code}, log); }
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    for (size_t at = 0; at < host.written.size();) {
      auto end = host.written.find('\n', at);
      all.push_back(host.written.substr(at, end - at));
      at = end + 1;
    }
    return all;
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::string file = newFile();
  RunLog log{openFile(file, O_WRONLY | O_APPEND), 1 << 20};
  Host host;
  ClaudeCodeExecutor executor;

  std::string logged() { return readFile(file, 1 << 20); }
  static std::string newFile() {
    char name[] = "/tmp/oc-claude-XXXXXX";
    close(mkstemp(name));
    return name;
  }
  ~World() { unlink(file.c_str()); }
};

TEST_CASE("claude is told its brief as a message, and its input stays open") {
  World world;
  auto message = parseJson(world.lines().at(0));
  CHECK(message.at("type") == "user");
  CHECK(message.at("message").at("content")[0].at("text") == "Do it");
  CHECK(message.at("uuid").get<std::string>().size() == 36);
  CHECK_FALSE(world.host.closed);
}

TEST_CASE("claude's session, usage and cost are told, wherever in a line they stand") {
  World world;
  world.init();
  CHECK(world.host.sessions == std::vector<std::string>{session});
  world.result(
      R"("modelUsage":{"a":{"inputTokens":240,"outputTokens":80,"cacheReadInputTokens":60,"cacheCreationInputTokens":20},)"
      R"("b":{"inputTokens":1}},"total_cost_usd":0.002672,"is_error":false,"num_turns":2,"subtype":"success","result":"ok")");
  CHECK(world.host.usage == AgentUsage{241, 80, 60, 20, 2672, 2});
  CHECK(world.host.closed);
  CHECK(world.host.ending);
  CHECK(world.exited(0).word == "done");
}

TEST_CASE("no number of models makes a usage that comes round to little") {
  World world;
  world.init();
  std::string models;
  for (int i = 0; i < 20'000; ++i)
    models += (i > 0 ? "," : "") + ("\"" + std::to_string(i)) + "\":{\"inputTokens\":999999999999999}";
  world.result("\"modelUsage\":{" + models + "},\"is_error\":false,\"subtype\":\"success\",\"result\":\"ok\"");
  CHECK(world.host.usage.inputTokens == 1'000'000'000'000'000);
}

TEST_CASE("a turn's ends are told apart") {
  World world;
  world.init();
  auto word = [&world](const std::string& result, int code) {
    world.result(result);
    return world.exited(code).word;
  };
  CHECK(word(R"("subtype":"success","is_error":true,"result":"API Error: 500","api_error_status":500)", 1) ==
        "api_error");
  CHECK(word(R"("subtype":"error_max_turns","is_error":true)", 1) == "max_turns");
  CHECK(word(R"("subtype":"error_max_budget_usd","is_error":true)", 1) == "budget");
  CHECK(word(R"("subtype":"error_during_execution","is_error":true,"errors":["broken"])", 1) == "agent_error");
  CHECK(word(R"("subtype":"success","is_error":false)", 3) == "agent_error");
  CHECK(word(R"("subtype":"success","is_error":false)", 0) == "done");
}

TEST_CASE("what is no Claude Code, is too old, or is not there, is named") {
  SECTION("another program") {
    World world;
    world.out("usage: claude FILE\n");
    CHECK(world.exited(2).word == "agent_unsuited");
  }
  SECTION("a version without an option") {
    World world;
    world.err("error: unknown option '--replay-user-messages'\n");
    CHECK(world.exited(1).word == "agent_unsuited");
  }
  SECTION("none") {
    World world;
    world.err("exec: claude: not found\n");
    CHECK(world.exited(127).word == "agent_missing");
  }
  SECTION("one whose session was none of its own") {
    World world("{\"session\": \"x\"}");
    world.result(
        R"("subtype":"error_during_execution","is_error":true,"errors":["Error: --resume requires a valid session ID"])");
    CHECK(world.exited(1).word == "session_lost");
  }
  SECTION("one whose session's file is a folder") {
    World world("{\"session\": \"x\"}");
    world.result(
        R"("subtype":"error_during_execution","is_error":true,"errors":["Failed to resume session: EISDIR: illegal operation on a directory, read"])");
    CHECK(world.exited(1).word == "session_lost");
  }
  SECTION("one whose session is gone") {
    World world("{\"session\": \"x\"}");
    world.out("No conversation found with session ID: x\n");
    CHECK(world.exited(1).word == "session_lost");
  }
}

TEST_CASE("a required MCP server that failed ends the turn, and one that is not required does not") {
  const char* needs = "{\"required_servers\": [\"open_conduit\"]}";
  SECTION("failed") {
    World world(needs);
    world.init(R"([{"name":"open_conduit","status":"failed"}])");
    CHECK(world.host.ending);
    CHECK(world.exited(0).word == "mcp_failed");
  }
  SECTION("missing") {
    World world(needs);
    world.init();
    CHECK(world.exited(0).word == "mcp_failed");
  }
  SECTION("there, beside another that failed") {
    World world(needs);
    world.init(R"([{"name":"other","status":"failed"},{"status":"connected","name":"open_conduit"}])");
    CHECK_FALSE(world.host.ending);
  }
}

TEST_CASE("retries are noted once, and a storm of them is ended") {
  World world("{\"most_retries\": 5}");
  world.init();
  auto retry = [&world]() {
    world.out(R"({"type":"system","subtype":"api_retry","error_status":529,"error":"overloaded"})"
              "\n");
  };
  for (int i = 0; i < 4; ++i) retry();
  CHECK(world.host.notes.size() == 1);
  world.out(R"({"type":"assistant","message":{}})"
            "\n");
  for (int i = 0; i < 5; ++i) retry();
  CHECK_FALSE(world.host.ending);
  retry();
  CHECK(world.host.ending);
  CHECK(world.exited(0).word == "retry_storm");
}

TEST_CASE("D7 a message is delivered when it is acknowledged, and the same id is one message") {
  World world;
  world.init();
  auto first = world.executor.inject("event-1", "Mind the gap");
  auto again = world.executor.inject("event-1", "Mind the gap");
  CHECK(world.lines().size() == 2);
  CHECK(parseJson(world.lines().at(1)).at("message").at("content")[0].at("text") == "Mind the gap");
  world.replay(1);
  CHECK(first.wait(world.io.waitScope).delivered);
  CHECK(again.wait(world.io.waitScope).delivered);
}

TEST_CASE("a result closes the input only when no message waits, and what waits at the end is not delivered") {
  World world;
  world.init();
  auto waits = world.executor.inject("event-1", "Wait");
  world.result(R"("subtype":"success","is_error":false)");
  CHECK_FALSE(world.host.closed);
  CHECK(world.host.ending);
  SECTION("it is taken into a turn more") {
    world.init();
    CHECK_FALSE(world.host.ending);
    world.replay(1);
    world.result(R"("subtype":"success","is_error":false)");
    CHECK(world.host.closed);
    CHECK(waits.wait(world.io.waitScope).delivered);
  }
  SECTION("it is not") {
    CHECK(world.exited(0).word == "done");
    CHECK_FALSE(waits.wait(world.io.waitScope).delivered);
  }
}

TEST_CASE("no message is taken once the turn has ended, by an agent that does not read, or while it is stopped") {
  World world;
  world.init();
  SECTION("ended") {
    world.result(R"("subtype":"success","is_error":false)");
    CHECK_FALSE(world.executor.inject("a", "b").wait(world.io.waitScope).delivered);
  }
  SECTION("does not read") {
    world.host.stuck = 4u << 20;
    CHECK_FALSE(world.executor.inject("a", "b").wait(world.io.waitScope).delivered);
  }
  SECTION("is stopped") {
    auto waits = world.executor.inject("a", "b");
    CHECK(world.executor.interrupt());
    CHECK_THAT(world.host.written, hasText("\"interrupt\""));
    CHECK_FALSE(waits.wait(world.io.waitScope).delivered);
  }
}

TEST_CASE("lines of standard output are whole in the log, and standard error's stand beside them") {
  World world;
  world.out("{\"type\":\"assis");
  world.err("careful\n");
  world.out("tant\"}\n");
  world.err("half");
  world.out("{\"type\":\"user\"}\n");
  CHECK(world.logged() == "{\"type\":\"assistant\"}\ncareful\nhalf\n{\"type\":\"user\"}\n");
}

TEST_CASE("bytes that are no UTF-8 and no JSON end nothing") {
  World world;
  world.init();
  world.out("\xff\xfe\x00 {[\n" + std::string(5000, '[') + "\n{\"type\":\"assistant\",\"x\":\"\xff\"}\n");
  world.result(R"("subtype":"success","is_error":false)");
  CHECK(world.exited(0).word == "done");
}

}  // namespace
}  // namespace oc::run
